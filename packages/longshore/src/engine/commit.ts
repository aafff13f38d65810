// Group commit: operations that arrive together run one after the other on memory, then all rows they touched are written in one
// transaction, and each caller is answered after that COMMIT. An operation that throws takes back its own changes only. When the
// transaction itself fails, everything of the batch is taken back and its operations are tried one by one, so that a row which
// cannot be written fails only its writer.
//
// A store may be asynchronous: a read of a row that is not in memory throws `Missing`, and a commit may be a promise. Then the batch takes
// back what it did from the first such operation on, loads all that was missing at once, and performs those operations again in their
// order. The next batch begins when this one is committed. A synchronous store never waits here.

import { type LongshoreError, toError } from "../core/errors.ts";
import { closedError, Postponed, unavailableError } from "./commit-errors.ts";
import { CommittedReads } from "./committed-reads.ts";
import { Missing, type RowStore, Unavailable } from "./rows.ts";
import type { Later, ReadTx, Tx } from "./tx.ts";
import { type Writable, Writables } from "./writables.ts";

interface Job {
  work: (tx: Tx) => unknown;
  resolve: (value: never) => void;
  reject: (error: Error) => void;
  value: unknown;
  error: Error | null;
  /** It has not been performed yet: it waits for this. */
  until: Promise<unknown> | null;
}

/** A job that is performed again: how it ended before means nothing. */
const untried: Pick<Job, "error" | "until"> = { error: null, until: null };

/** Operations of one transaction at most: keeps the longest pause of the event loop near 20 ms. */
const batchMax = 500;
/** Steps that operations report, after which a transaction takes no more of them: some milliseconds. */
const stepsMax = 50_000;
/** Characters of stored texts that count as one step: a transaction takes no more operations once it has 1.6 M characters to write. */
const stepChars = 32;
/** After the disk refused a commit, callers are refused for this long before the next try. */
const restMs = 250;
/** Times that a batch is performed again for rows that were missing: each needs at least one more row, so this is a defect. */
const loadsMax = 10_000;

export class GroupCommit {
  readonly #store: RowStore;
  readonly #writables = new Writables();
  readonly #undo: (() => void)[] = [];
  readonly #after: (() => void)[] = [];
  readonly #now: () => number;
  readonly #tx: Tx;
  #queue: Job[] = [];
  #scheduled = false;
  /** The batch that waits for its store; null between batches. */
  #underWay: Promise<unknown> | null = null;
  /** The commit that the store is busy with. */
  #committing: Promise<unknown> | null = null;
  /** From the first operation of a batch to its results. */
  #isWriting = false;
  #closed = false;
  /** Why the last commit was not written, until one is. */
  #away: Unavailable | null = null;
  #restUntil = 0;
  #commits = 0;
  #steps = 0;
  readonly #reads: CommittedReads;
  /** Why commits do not last: the data file is not in its place any more. */
  #gone: LongshoreError | null = null;
  #refusal: LongshoreError | null = null;
  #listener: (why: Error | null) => void = () => {};
  #reportedAway = false;

  constructor(store: RowStore, now: () => number) {
    this.#store = store;
    this.#now = now;
    const committed = () => this.#committing ?? Promise.resolve();
    this.#reads = new CommittedReads(store, { commits: () => this.#commits, committed, alone: (work) => this.#alone(work) });
    this.#tx = {
      isOperation: true,
      loaded: new Map(),
      undo: (takeBack) => this.#undo.push(takeBack),
      after: (then) => this.#after.push(then),
      spend: (steps) => {
        this.#steps += steps;
      },
      weigh: (chars) => {
        this.#steps += chars / stepChars;
      },
    };
  }

  /** Takes part in every commit from now on. */
  join(writable: Writable): void {
    this.#writables.add(writable);
  }

  /**
   * Takes part in the commits of batches that touch it. The function that is returned must be called before a change, and in `applied` when
   * something is left to be written along; it may be called again.
   */
  joinWhenTouched(writable: Writable): () => void {
    return this.#writables.addWhenTouched(writable);
  }

  /**
   * Runs `work` in the next batch. It must not await, and must make its changes through what has joined this commit. Where it returns the
   * promise of another operation, its caller waits for that one too.
   */
  run<T>(work: (tx: Tx) => T | Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise<T>((resolve, reject) => this.#add({ work, resolve, reject, value: undefined, error: null, until: null }));
  }

  /** Reads what is committed, outside of any batch. */
  read<T>(work: (tx: ReadTx) => Later<T>): Promise<T> {
    return this.#reads.read(work);
  }

  /** The same: at once where the store can. */
  look<T>(work: (tx: ReadTx) => Later<T>): Later<T> {
    return this.#reads.look(work);
  }

  /** Whether a batch is under way: what is kept in memory may be older than what it makes durable. */
  get isWriting(): boolean {
    return this.#isWriting;
  }

  /** Resolves when no operation is queued or under way. */
  async quiet(): Promise<void> {
    while (this.#underWay !== null || this.#queue.length > 0) await (this.#underWay ?? new Promise((resolve) => setImmediate(resolve)));
  }

  /** How many transactions were committed; the proof of how few are needed. */
  get commits(): number {
    return this.#commits;
  }

  /** Null when writing works; else why it does not. */
  get unavailable(): LongshoreError | null {
    return this.#refusal ?? this.#gone ?? (this.#away === null ? null : unavailableError(this.#away));
  }

  /** Looks for the data file in its place, for a store that is not written to. */
  lookForFile(): void {
    if (this.#gone !== null) return;
    this.#gone = this.#store.isGone();
    this.#tell(this.#gone);
  }

  /** From now on nothing is written: each operation that would change something fails with `error`. Reading goes on. */
  refuse(error: LongshoreError): void {
    this.#refusal = error;
    this.#tell(error);
  }

  /** Notified when writing has become impossible, with the reason, and when it works again, with null. */
  hear(listener: (why: Error | null) => void): void {
    this.#listener = listener;
  }

  /** Carries out what is queued, then refuses everything. */
  close(): Later<void> {
    while (this.#underWay === null && this.#queue.length > 0) this.#drain();
    if (this.#underWay !== null) return this.#underWay.then(() => this.close());
    this.#closed = true;
  }

  /** Performs it between two batches. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    while (this.#underWay !== null) await this.#underWay;
    const done = work();
    // Its caller gets the error.
    this.#occupy(done.catch(() => {}));
    return done;
  }

  /** No batch begins before this has settled. */
  #occupy(done: Promise<unknown>): void {
    this.#underWay = done.finally(() => {
      this.#underWay = null;
      if (this.#queue.length > 0) this.#schedule();
    });
  }

  #add(job: Job): void {
    this.#queue.push(job);
    this.#schedule();
  }

  #addLater(job: Job, until: Promise<unknown>): void {
    job.until = null;
    until.then(
      () => (this.#closed ? job.reject(closedError()) : this.#add(job)),
      (error: unknown) => job.reject(toError(error)),
    );
  }

  #schedule(): void {
    if (this.#scheduled || this.#underWay !== null) return;
    this.#scheduled = true;
    setImmediate(() => this.#drain());
  }

  #drain(): void {
    this.#scheduled = false;
    if (this.#underWay !== null) return;
    this.#isWriting = true;
    const jobs = this.#performSome();
    const done = jobs instanceof Promise ? jobs.then((some) => this.#commit(some)) : this.#commit(jobs);
    if (done instanceof Promise) this.#occupy(done);
    else if (this.#queue.length > 0) this.#schedule();
  }

  #performSome(): Later<Job[]> {
    // What operations add to the queue themselves comes after them, in another transaction.
    const most = Math.min(batchMax, this.#queue.length);
    this.#steps = 0;
    let at = 0;
    let firstMissing: Later<Job[]> | null = null;
    while (at < most && this.#steps < stepsMax) {
      const job = this.#queue[at++] as Job;
      const missing = this.#perform(job);
      if (missing === null) continue;
      const jobs = this.#queue.splice(0, most);
      firstMissing = this.#loadAndPerform(jobs, at - 1, missing);
      break;
    }
    return firstMissing ?? this.#queue.splice(0, at);
  }

  /** Performs the jobs from `from` on once what they miss is there. What cannot be loaded fails all of them. */
  async #loadAndPerform(jobs: Job[], from: number, first: Missing): Promise<Job[]> {
    try {
      await this.#performWhenLoaded(jobs, from, first);
    } catch (thrown) {
      this.#takeBack(0);
      this.#after.length = 0;
      const error = this.#unwritten(thrown);
      for (const job of jobs) Object.assign(job, { error, until: null });
    }
    return jobs;
  }

  /** What they did is taken back before each load, so that they run in their order. */
  async #performWhenLoaded(jobs: Job[], from: number, first: Missing): Promise<void> {
    for (let loads = 0, missing = first, at = from; loads < loadsMax; loads++) {
      await this.#store.load(
        this.#tx,
        [missing, ...this.#missedBy(jobs.slice(at + 1))].flatMap(({ all }) => all),
      );
      let next: Missing | null = null;
      while (at < jobs.length) {
        next = this.#perform(jobs[at] as Job);
        if (next !== null) break;
        at++;
      }
      if (next === null) return;
      missing = next;
    }
    throw new Error(`A batch was performed ${loadsMax} times and still misses rows.`);
  }

  /** What operations would miss, found by trying; nothing of what they do remains. */
  #missedBy(jobs: readonly Job[]): Missing[] {
    const undoFrom = this.#undo.length;
    const afterFrom = this.#after.length;
    const missed: Missing[] = [];
    for (const job of jobs) {
      const missing = this.#perform(job);
      if (missing !== null) missed.push(missing);
    }
    this.#takeBack(undoFrom);
    this.#after.length = afterFrom;
    for (const job of jobs) Object.assign(job, untried);
    return missed;
  }

  #commit(jobs: Job[]): Later<void> {
    const commitsBefore = this.#commits;
    const failure = this.#write();
    const end = (reason: Error | null) => this.#end(jobs, reason, commitsBefore);
    return failure instanceof Promise ? failure.then(end) : end(failure);
  }

  #end(jobs: Job[], failure: Error | null, commitsBefore: number): Later<void> {
    // What was committed stays so in memory as well: the file may come back. But no caller may rely on it.
    if (failure === null) return this.#answer(jobs, this.#commits === commitsBefore ? null : this.#gone);
    this.#takeBack(0);
    this.#after.length = 0;
    if (jobs.length > 1) return this.#oneByOne(jobs, 0);
    (jobs[0] as Job).error ??= failure;
    (jobs[0] as Job).until = null;
    return this.#answer(jobs, null);
  }

  #oneByOne(jobs: readonly Job[], from: number): Later<void> {
    for (let at = from; at < jobs.length; at++) {
      const job = jobs[at] as Job;
      Object.assign(job, untried);
      this.#isWriting = true;
      const missing = this.#perform(job);
      const done = missing === null ? this.#commit([job]) : this.#loadAndPerform([job], 0, missing).then((some) => this.#commit(some));
      if (done instanceof Promise) return done.then(() => this.#oneByOne(jobs, at + 1));
    }
  }

  /** Returns what it misses, if it misses something; then nothing of it remains. */
  #perform(job: Job): Missing | null {
    const undoFrom = this.#undo.length;
    const afterFrom = this.#after.length;
    try {
      job.value = job.work(this.#tx);
      return null;
    } catch (thrown) {
      this.#takeBack(undoFrom);
      this.#after.length = afterFrom;
      if (thrown instanceof Missing) return thrown;
      if (thrown instanceof Postponed) job.until = thrown.until;
      else job.error = toError(thrown);
      return null;
    }
  }

  #write(): Later<Error | null> {
    if (!this.#writables.dirty) return null;
    const failure = this.#writeNow();
    return failure instanceof Promise ? failure.then((reason) => this.#tell(reason)) : this.#tell(failure);
  }

  /** Returns the failure. */
  #tell(failure: Error | null): Error | null {
    const away = this.unavailable;
    if ((away !== null) !== this.#reportedAway) {
      this.#reportedAway = away !== null;
      this.#listener(away === null ? null : (failure ?? away));
    }
    return failure;
  }

  #writeNow(): Later<Error | null> {
    // The rest matters only here: operations that change nothing are answered all the same.
    if (this.#refusal !== null) return this.#refusal;
    if (this.#gone !== null) this.#gone = this.#store.isGone();
    if (this.#gone !== null) return this.#gone;
    if (this.#away !== null && this.#restUntil > this.#now()) return unavailableError(this.#away);
    try {
      const written = this.#store.commit(this.#writeParts);
      if (!(written instanceof Promise)) return this.#written();
      const failure = written.then(this.#written, this.#unwritten);
      this.#committing = failure;
      return failure;
    } catch (thrown) {
      return this.#unwritten(thrown);
    }
  }

  readonly #writeParts = (): void => {
    this.#writables.write(this.#tx);
  };

  readonly #written = (): null => {
    this.#committing = null;
    this.#commits++;
    this.#away = null;
    this.#gone = this.#store.isGone();
    return null;
  };

  readonly #unwritten = (thrown: unknown): Error => {
    this.#committing = null;
    if (!(thrown instanceof Unavailable)) return toError(thrown);
    this.#away = thrown;
    this.#restUntil = this.#now() + restMs;
    return unavailableError(thrown);
  };

  #answer(jobs: Job[], doubt: LongshoreError | null): void {
    this.#undo.length = 0;
    this.#isWriting = false;
    if (this.#tx.loaded.size > 0) this.#tx.loaded.clear();
    this.#writables.applied();
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
