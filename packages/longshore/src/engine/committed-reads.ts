// Reads outside of operations. They see committed rows. When the store reads asynchronously, a read that misses rows loads them and is
// performed again. The loaded rows belong to this read alone.
//
// Loaded rows and memory must have the same version. Some stores report the version of a load. If the load already has a commit that memory
// does not have, the read waits for that commit. Other stores report no version: after each commit, the read loads its rows again.
//
// Rows that are older than memory are loaded again, all at once. When several commits end during one read, the read is performed between
// two batches, and the next batch waits for it.
//
// Memory is valid only while this server owns the data. When another server may have taken over, a commit must succeed before the result of
// a read is returned.

import { Missing } from "../core/missing.ts";
import { unavailableError } from "./commit-errors.ts";
import { type RowStore, Unavailable } from "./rows.ts";
import type { Later, ReadTx } from "./tx.ts";

type Work<T> = (tx: ReadTx) => Later<T>;

/** An object, because `work` may return a promise: the next batch must not wait for it. */
interface Found<T> {
  readonly value: Later<T>;
}

/** The methods of the group commit that reads use. */
export interface Batches {
  /** The number of committed transactions. */
  commits(): number;
  /** Resolves when no commit is in progress. */
  committed(): Promise<unknown>;
  /** Performs `work` between two batches. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Begins a commit and resolves when it has ended; rejects when this server cannot commit. */
  confirmed(): Promise<void>;
  /** The version of the data that memory has; undefined for a store without versions. */
  version(): number | undefined;
  /** Resolves when the batch that is in progress is committed and in memory. */
  answered(): Promise<unknown>;
}

export interface ReadCounts {
  /** Reads that needed rows which are not in memory. */
  loaded: number;
  /** Times that rows were loaded again because a commit came in between. */
  overtaken: number;
  /** Reads that delayed a batch. */
  alone: number;
}

/**
 * Maximum number of times that a read is performed again for missing rows. Each time loads at least one more row, so reaching the limit is
 * a defect.
 */
const loadsMax = 10_000;
/** When this many commits have ended during a read, the read delays the next batch. */
const overtakenMax = 3;

export class CommittedReads {
  readonly #store: RowStore;
  readonly #batches: Batches;
  readonly counts: ReadCounts = { loaded: 0, overtaken: 0, alone: 0 };
  /** Used for synchronous reads: nothing is ever loaded into it. */
  readonly #atOnce: ReadTx = readTx();

  constructor(store: RowStore, batches: Batches) {
    this.#store = store;
    this.#batches = batches;
  }

  read<T>(work: Work<T>): Promise<T> {
    try {
      return Promise.resolve(this.look(work));
    } catch (thrown) {
      return Promise.reject(thrown);
    }
  }

  look<T>(work: Work<T>): Later<T> {
    try {
      const found = work(this.#atOnce);
      return this.#store.isOwned() ? found : this.#confirmed(found);
    } catch (thrown) {
      if (thrown instanceof Missing) return this.#whenLoaded(work, thrown.all).then(({ value }) => this.#confirmed(value));
      throw thrown;
    }
  }

  /** A commit that begins after the read shows that memory was current. */
  async #confirmed<T>(value: Later<T>): Promise<T> {
    if (!this.#store.isOwned()) await this.#batches.confirmed();
    return value;
  }

  async #whenLoaded<T>(work: Work<T>, first: readonly Missing[]): Promise<Found<T>> {
    const needed = [...first];
    this.counts.loaded++;
    for (let overtaken = 0; overtaken <= overtakenMax; overtaken++) {
      const found = await this.#perform(work, needed);
      if (found !== null) return found;
      this.counts.overtaken++;
    }
    this.counts.alone++;
    const found = await this.#batches.alone(() => this.#perform(work, needed, true));
    if (found !== null) return found;
    throw this.#store.isGone() ?? new Error("A commit came in the middle of a read that was alone.");
  }

  /** Loads the needed rows, and adds further missing ones to `needed`. Returns null when a commit happened in between. */
  async #perform<T>(work: Work<T>, needed: Missing[], isAlone = false): Promise<Found<T> | null> {
    const tx = readTx();
    const before: Before = { commits: this.#batches.commits(), version: undefined, isAlone };
    let missing: readonly Missing[] = needed;
    for (let loads = 0; loads < loadsMax; loads++) {
      if (!(await this.#loadOfMemory(tx, missing, before))) return null;
      try {
        return { value: work(tx) };
      } catch (thrown) {
        if (!(thrown instanceof Missing)) throw thrown;
        missing = thrown.all;
        needed.push(...missing);
      }
    }
    throw new Error(`A read was performed ${loadsMax} times and still misses rows.`);
  }

  /** Loads rows. Returns whether these rows, those of earlier loads, and memory have the same version. */
  async #loadOfMemory(tx: ReadTx, missing: readonly Missing[], before: Before): Promise<boolean> {
    const version = await this.#load(tx, missing);
    if (version === "torn") return false;
    if (version === undefined) {
      // The load may have read rows of a commit that is complete in the store, and not yet in this process.
      await this.#batches.committed();
      return this.#batches.commits() === before.commits;
    }
    before.version ??= version;
    // The load has read rows of a commit whose response has not arrived yet.
    if (!before.isAlone && version > (this.#batches.version() ?? version)) await this.#batches.answered();
    return version === before.version && version === this.#batches.version();
  }

  async #load(tx: ReadTx, missing: readonly Missing[]): Promise<number | "torn" | undefined> {
    try {
      return await this.#store.load(tx, missing);
    } catch (thrown) {
      throw thrown instanceof Unavailable ? unavailableError(thrown) : thrown;
    }
  }
}

/** The state when a read began. */
interface Before {
  readonly commits: number;
  /** The version of the first load. */
  version: number | undefined;
  /** No batch is in progress. */
  readonly isAlone: boolean;
}

function readTx(): ReadTx {
  return { isOperation: false, loaded: new Map() };
}
