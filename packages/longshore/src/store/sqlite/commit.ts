// Group commit: operations that arrive together run one after the other on memory, then all rows they touched are written in one
// transaction, and each caller is answered after that COMMIT. An operation that throws takes back its own changes only. When the
// transaction itself fails, everything of the batch is taken back and its operations are tried one by one, so that a row which
// cannot be written fails nobody but its writer.

import { LongshoreError, toError } from "../../errors.ts";
import { type Database, isUnavailable } from "./driver.ts";

/**
 * Thrown inside an operation: it needs something that takes long to make, such as the plan of a large definition. What it has changed is taken
 * back, and it is performed again as soon as that is there; other operations go on meanwhile.
 */
export class Postponed extends Error {
  /** When it rejects, the operation fails with the same error. */
  readonly until: Promise<unknown>;

  constructor(until: Promise<unknown>) {
    super("The operation is performed again when what it needs is there.");
    this.until = until;
    // Where the operation has failed for another reason by then, no one waits for it.
    until.catch(() => {});
  }
}

interface Job {
  work: () => unknown;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  value: unknown;
  error: Error | null;
  /** It has not been performed yet: it waits for this. */
  until: Promise<unknown> | null;
}

/** What a batch has changed; implemented by `Rows` and by the small insert-only lists. */
export interface Writable {
  /** True when something has to be written. */
  readonly dirty: boolean;
  /** Called in every transaction, dirty or not: what can wait is written along. */
  write(): void;
  /** The batch is over. What is still pending is durable: what failed was taken back before. */
  applied(): void;
}

/** Operations of one transaction at most: keeps the longest pause of the event loop near 20 ms. */
const batchMax = 500;
/** Steps that operations report, after which a transaction takes no more of them: some milliseconds. */
const stepsMax = 50_000;
/** Characters of stored texts that count as one step: a transaction takes no more operations once it has 1.6 M characters to write. */
const stepChars = 32;
/** After the disk refused a commit, callers are refused for this long before the next try. */
const restMs = 250;

export class GroupCommit {
  readonly #db: Database;
  readonly #parts: Writable[] = [];
  readonly #undo: (() => void)[] = [];
  readonly #after: (() => void)[] = [];
  readonly #now: () => number;
  readonly #isGone: () => LongshoreError | null;
  #queue: Job[] = [];
  #scheduled = false;
  #closed = false;
  #restUntil = 0;
  #commits = 0;
  #steps = 0;
  /** Why commits do not last: the data file is not in its place any more. */
  #gone: LongshoreError | null = null;
  #refusal: LongshoreError | null = null;
  #listener: (why: Error | null) => void = () => {};
  #told = false;

  /** `isGone` is called after each commit and before its answers: an error when what was written cannot be found again. */
  constructor(db: Database, now: () => number, isGone: () => LongshoreError | null = () => null) {
    this.#db = db;
    this.#now = now;
    this.#isGone = isGone;
  }

  /** Takes part in every commit from now on. */
  join(part: Writable): void {
    this.#parts.push(part);
  }

  /**
   * Runs `work` in the next batch. It must not await, and must make its changes through parts of this commit. Where it answers with the
   * promise of another operation, its caller waits for that one too.
   */
  run<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise<T>((resolve, reject) => this.#add({ work, resolve, reject, value: undefined, error: null, until: null }));
  }

  #add(job: Job): void {
    this.#queue.push(job);
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => this.#drain());
  }

  #addLater(job: Job, until: Promise<unknown>): void {
    job.until = null;
    until.then(
      () => (this.#closed ? job.reject(closedError()) : this.#add(job)),
      (error: unknown) => job.reject(toError(error)),
    );
  }

  /** Inside an operation: how to take a change of memory back. Called in reverse order. */
  undo(takeBack: () => void): void {
    this.#undo.push(takeBack);
  }

  /** Inside an operation: it was a dear one. What is queued behind waits for the next transaction, and others get their turn before. */
  spend(steps: number): void {
    this.#steps += steps;
  }

  /** Inside an operation: it writes so many characters. Large ones share no transaction, so that none writes many megabytes at once. */
  weigh(chars: number): void {
    this.#steps += chars / stepChars;
  }

  /** Inside an operation: called once its change is durable. */
  after(then: () => void): void {
    this.#after.push(then);
  }

  /** How many transactions were committed; the proof of how few are needed. */
  get commits(): number {
    return this.#commits;
  }

  /** Null when writing works; else why it does not. */
  get unavailable(): LongshoreError | null {
    return this.#refusal ?? this.#gone ?? (this.#restUntil === 0 ? null : unavailableError(undefined));
  }

  /** Looks for the data file in its place, for a store that is not written to. */
  lookForFile(): void {
    if (this.#gone !== null) return;
    this.#gone = this.#isGone();
    this.#tell(this.#gone);
  }

  /** From now on nothing is written: each operation that would change something fails with `error`. Reading goes on. */
  refuse(error: LongshoreError): void {
    this.#refusal = error;
    this.#tell(error);
  }

  /** Told when writing has become impossible, with the reason, and when it works again, with null. */
  hear(listener: (why: Error | null) => void): void {
    this.#listener = listener;
  }

  /** Carries out what is queued, then refuses everything. */
  close(): void {
    while (this.#queue.length > 0) this.#drain();
    this.#closed = true;
  }

  #drain(): void {
    this.#scheduled = false;
    const jobs = this.#performSome();
    if (this.#queue.length > 0 && !this.#scheduled) {
      this.#scheduled = true;
      setImmediate(() => this.#drain());
    }
    this.#commit(jobs);
  }

  #performSome(): Job[] {
    // What operations add to the queue themselves comes after them, in another transaction.
    const most = Math.min(batchMax, this.#queue.length);
    this.#steps = 0;
    let at = 0;
    while (at < most && this.#steps < stepsMax) this.#perform(this.#queue[at++] as Job);
    return this.#queue.splice(0, at);
  }

  #commit(jobs: Job[]): void {
    const commitsBefore = this.#commits;
    const failure = this.#write();
    // What was committed stays so in memory as well: the file may come back. But no caller may rely on it.
    if (failure === null) return this.#answer(jobs, this.#commits === commitsBefore ? null : this.#gone);
    this.#takeBack(0);
    this.#after.length = 0;
    if (jobs.length === 1) {
      (jobs[0] as Job).error ??= failure;
      (jobs[0] as Job).until = null;
      return this.#answer(jobs, null);
    }
    for (const job of jobs) {
      job.error = null;
      job.until = null;
      this.#perform(job);
      this.#commit([job]);
    }
  }

  #perform(job: Job): void {
    const undoFrom = this.#undo.length;
    const afterFrom = this.#after.length;
    try {
      job.value = job.work();
    } catch (thrown) {
      if (thrown instanceof Postponed) job.until = thrown.until;
      else job.error = toError(thrown);
      this.#takeBack(undoFrom);
      this.#after.length = afterFrom;
    }
  }

  #write(): Error | null {
    if (!this.#parts.some((part) => part.dirty)) return null;
    const failure = this.#writeNow();
    this.#tell(failure);
    return failure;
  }

  #tell(failure: Error | null): void {
    const away = this.unavailable;
    if ((away !== null) === this.#told) return;
    this.#told = away !== null;
    this.#listener(away === null ? null : (failure ?? away));
  }

  #writeNow(): Error | null {
    // Resting is asked only here: operations that change nothing are answered all the same.
    if (this.#refusal !== null) return this.#refusal;
    if (this.#gone !== null) this.#gone = this.#isGone();
    if (this.#gone !== null) return this.#gone;
    if (this.#restUntil > this.#now()) return unavailableError(undefined);
    try {
      this.#db.transaction(() => {
        for (const part of this.#parts) part.write();
      });
      this.#commits++;
      this.#restUntil = 0;
      this.#gone = this.#isGone();
      return null;
    } catch (thrown) {
      if (!isUnavailable(thrown)) return toError(thrown);
      this.#restUntil = this.#now() + restMs;
      return unavailableError(thrown);
    }
  }

  #answer(jobs: Job[], doubt: LongshoreError | null): void {
    this.#undo.length = 0;
    for (const part of this.#parts) part.applied();
    const after = this.#after.splice(0);
    for (const then of after) then();
    for (const job of jobs) {
      const error = job.error ?? doubt;
      if (job.until !== null) this.#addLater(job, job.until);
      else if (error === null) job.resolve(job.value as never);
      else job.reject(error);
    }
  }

  #takeBack(from: number): void {
    while (this.#undo.length > from) this.#undo.pop()?.();
  }
}

function closedError(): LongshoreError {
  return new LongshoreError("LONGSHORE_CLOSED", "The store has been closed.");
}

function unavailableError(cause: unknown): LongshoreError {
  const why = cause === undefined ? "" : `: ${toError(cause).message}`;
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data file cannot be written now${why}. Make room on the disk; service resumes by itself.`,
    {
      cause,
    },
  );
}
