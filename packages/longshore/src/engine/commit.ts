// Group commit. Operations that arrive together run one after the other in memory. Then all changed rows are written in one transaction,
// and each caller gets its result after the COMMIT. An operation that throws undoes only its own changes. When the transaction fails, all
// are undone and tried one by one. So a row that cannot be written fails only its writer.
//
// In an asynchronous store, reading a row that is not in memory throws `Missing`, and a commit may return a promise. The batch then undoes
// its operations from that one on, loads all missing rows at once, and performs them again in their order. The next batch starts when this
// one is committed.

import { AsyncLocalStorage } from "node:async_hooks";
import { type LongshoreError, toError } from "../core/errors.ts";
import { Missing } from "../core/missing.ts";
import type { Orderer } from "../core/orderer.ts";
import { closedError, Postponed } from "./commit-errors.ts";
import { type Job, untried } from "./commit-job.ts";
import { CommitWriter } from "./commit-writer.ts";
import { CommittedReads, type ReadCounts } from "./committed-reads.ts";
import { type RowStore, Unavailable } from "./rows.ts";
import type { Later, ReadTx, Tx } from "./tx.ts";
import { type Writable, Writables } from "./writables.ts";

/** Maximum number of operations in one transaction: keeps the longest pause of the event loop near 20 ms. */
const batchMax = 500;
/** After this many reported steps a transaction takes no more operations. The steps take some milliseconds. */
const stepsMax = 50_000;
/** Characters of stored texts that count as one step: a transaction takes no more operations once it writes 1.6 M characters. */
const stepChars = 32;
/**
 * A batch with more characters is written in the turn after the one that performs it. Both take about as long: 10 ms for each million characters
 * with many values.
 */
const apartChars = 524_288;
/**
 * Maximum number of times that a batch is performed again for missing rows. Each time loads at least one more row, so reaching the limit is
 * a defect.
 */
const loadsMax = 10_000;

export class GroupCommit {
  readonly #store: RowStore;
  readonly #writables = new Writables();
  readonly #undo: (() => void)[] = [];
  readonly #after: (() => void)[] = [];
  readonly #tx: Tx & { orderer: Orderer | undefined };
  readonly #orderer: () => Orderer | undefined;
  /** Performs batches, and the work after a commit, outside of the asynchronous context of the request that began the batch. */
  readonly #outside = AsyncLocalStorage.snapshot();
  #queue: Job[] = [];
  #scheduled = false;
  /** The batch that waits for its store; null between batches. */
  #underWay: Promise<unknown> | null = null;
  /** True from the first operation of a batch until its results are delivered. */
  #isWriting = false;
  #closed = false;
  #operations = 0;
  /** The version of the data that memory has. */
  #version: number | undefined;
  #steps = 0;
  /** The characters that the batch writes. */
  #chars = 0;
  readonly #reads: CommittedReads;
  readonly #writer: CommitWriter;

  /** `orderer` returns who ordered the work that is being done. Default: no one is known. */
  constructor(store: RowStore, now: () => number, orderer: () => Orderer | undefined = () => undefined) {
    this.#store = store;
    this.#orderer = orderer;
    this.#reads = new CommittedReads(store, {
      commits: () => this.#writer.commits,
      committed: () => this.#writer.committed(),
      alone: (work) => this.#alone(work),
      confirmed: () => this.run(() => {}),
      version: () => this.#version,
      answered: () => this.#underWay ?? Promise.resolve(),
    });
    this.#version = store.version?.();
    const hasSpent = () => this.#steps >= stepsMax;
    this.#tx = {
      isOperation: true,
      orderer: undefined,
      loaded: new Map(),
      undo: (takeBack) => this.#undo.push(takeBack),
      after: (then) => this.#after.push(then),
      spend: (steps) => {
        this.#steps += steps;
      },
      get isSpent() {
        return hasSpent();
      },
      weigh: (chars) => {
        this.#steps += chars / stepChars;
        this.#chars += chars;
      },
    };
    this.#writer = new CommitWriter(store, this.#writables, this.#tx, now);
  }

  /** Includes `writable` in every commit from now on. */
  join(writable: Writable): void {
    this.#writables.add(writable);
  }

  /**
   * Includes `writable` in the commits of batches that touch it. The returned function marks it as touched. It must be called before a
   * change, and in `applied` when something is left to write; it may be called again.
   */
  joinWhenTouched(writable: Writable): () => void {
    return this.#writables.addWhenTouched(writable);
  }

  /**
   * Runs `work` in the next batch. It must not await, and must make its changes through objects that have joined this commit. If it returns
   * the promise of another operation, the caller waits for that one too.
   */
  run<T>(work: (tx: Tx) => T | Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(closedError());
    return new Promise<T>((resolve, reject) =>
      this.#add({ orderer: this.#orderer(), work, resolve, reject, value: undefined, error: null, until: null }),
    );
  }

  /** Reads committed rows, outside of any batch. */
  read<T>(work: (tx: ReadTx) => Later<T>): Promise<T> {
    return this.#reads.read(work);
  }

  /** The same, but synchronous when the store can read synchronously. */
  look<T>(work: (tx: ReadTx) => Later<T>): Later<T> {
    return this.#reads.look(work);
  }

  /** Returns whether memory has the committed state: no batch is in progress, and no other server can have taken over the data. */
  get isMemoryCurrent(): boolean {
    return !this.#isWriting && this.#store.isOwned();
  }

  /** Resolves when no operation is queued or in progress. */
  async quiet(): Promise<void> {
    while (this.#underWay !== null || this.#queue.length > 0) await (this.#underWay ?? new Promise((resolve) => setImmediate(resolve)));
  }

  /** Statistics of reads that commits have disturbed. */
  get reads(): Readonly<ReadCounts> {
    return this.#reads.counts;
  }

  /** The number of committed transactions; shows that operations share commits. */
  get commits(): number {
    return this.#writer.commits;
  }

  /** The number of operations in these transactions. */
  get operations(): number {
    return this.#operations;
  }

  /** Why the store cannot be written; null when it can. */
  get unavailable(): LongshoreError | null {
    return this.#writer.unavailable;
  }

  /** Checks that the data file is in its place, for a store that is not being written. */
  lookForFile(): void {
    this.#writer.lookForFile();
  }

  /** Stops all writes: each operation that would change something fails with `error`. Reads continue. */
  refuse(error: LongshoreError): void {
    this.#writer.refuse(error);
  }

  /** Sets the listener that is called with the reason when writing becomes impossible, and with null when it works again. */
  hear(listener: (why: Error | null) => void): void {
    this.#writer.hear(listener);
  }

  /** Performs the queued operations, then refuses all others. */
  close(): Later<void> {
    while (this.#underWay === null && this.#queue.length > 0) this.#drain();
    if (this.#underWay !== null) return this.#underWay.then(() => this.close());
    this.#closed = true;
  }

  /** Performs `work` between two batches. */
  async #alone<T>(work: () => Promise<T>): Promise<T> {
    while (this.#underWay !== null) await this.#underWay;
    const done = work();
    // The caller gets the error from `done`.
    this.#occupy(done.catch(() => {}));
    return done;
  }

  /** No batch starts before `done` has settled. */
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
    setImmediate(this.#outside, this.#drain);
  }

  readonly #drain = (): void => {
    this.#scheduled = false;
    if (this.#underWay !== null) return;
    this.#isWriting = true;
    const jobs = this.#performSome();
    const done = jobs instanceof Promise ? jobs.then((some) => this.#commitInTurn(some)) : this.#commitInTurn(jobs);
    if (done instanceof Promise) this.#occupy(done);
    else if (this.#queue.length > 0) this.#schedule();
  };

  #performSome(): Later<Job[]> {
    // Operations that these operations queue run in a later transaction.
    const most = Math.min(batchMax, this.#queue.length);
    this.#steps = 0;
    this.#chars = 0;
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

  /**
   * Performs the jobs from `from` on after loading the rows that they miss. Returns those that are to be committed. When what one job reads
   * makes the load fail, the jobs are performed and committed one by one.
   */
  async #loadAndPerform(jobs: Job[], from: number, first: Missing): Promise<Job[]> {
    try {
      await this.#performWhenLoaded(jobs, from, first);
    } catch (thrown) {
      this.#takeBack(0);
      this.#after.length = 0;
      if (jobs.length > 1 && !(thrown instanceof Unavailable)) {
        await this.#oneByOne(jobs, 0);
        return [];
      }
      const error = this.#writer.failed(thrown);
      for (const job of jobs) Object.assign(job, { error, until: null });
    }
    return jobs;
  }

  /** These jobs are undone before each load, so that they run in their order. */
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

  /** Finds the rows that operations would miss by performing them; then undoes all their changes. */
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

  #commitInTurn(jobs: Job[]): Later<void> {
    if (this.#chars <= apartChars) return this.#commit(jobs);
    return new Promise((resolve) => setImmediate(resolve)).then(() => this.#commit(jobs));
  }

  #commit(jobs: Job[]): Later<void> {
    const commitsBefore = this.#writer.commits;
    const failure = this.#writer.write();
    const end = (reason: Error | null) => this.#end(jobs, reason, commitsBefore);
    return failure instanceof Promise ? failure.then(end) : end(failure);
  }

  #end(jobs: Job[], failure: Error | null, commitsBefore: number): Later<void> {
    if (failure === null) {
      const isCommitted = this.#writer.commits !== commitsBefore;
      if (isCommitted) this.#operations += jobs.length;
      // Memory keeps what was committed, because the file may come back. But callers get an error, because the commit may be lost.
      return this.#answer(jobs, isCommitted ? this.#writer.gone : null);
    }
    this.#takeBack(0);
    this.#after.length = 0;
    if (jobs.length > 1) return this.#oneByOne(jobs, 0);
    const [job] = jobs;
    // A batch may consist only of deferred changes; they wait for the next batch.
    if (job !== undefined) {
      job.error ??= failure;
      job.until = null;
    }
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

  /** Returns the rows that the job misses, or null. When rows are missing, the job is undone. */
  #perform(job: Job): Missing | null {
    const undoFrom = this.#undo.length;
    const afterFrom = this.#after.length;
    this.#tx.orderer = job.orderer;
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

  #answer(jobs: Job[], doubt: LongshoreError | null): void {
    this.#undo.length = 0;
    this.#isWriting = false;
    if (this.#tx.loaded.size > 0) this.#tx.loaded.clear();
    this.#writables.applied();
    this.#version = this.#store.version?.();
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
