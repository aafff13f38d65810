// Reads outside of operations. They see committed rows: at once when the store reads synchronously. Otherwise a read that misses rows loads
// them and is performed again. The loaded rows belong to this read alone: an operation never sees rows that were loaded before the last
// commit.
//
// A commit during a load may make the loaded rows older than memory. Then all of them are loaded again, at once. A read that commits
// overtake several times is performed between two batches.
//
// Memory counts only while this server owns the data. When another one may have taken over, what was read is returned after a commit that
// shows that none had.

import { unavailableError } from "./commit-errors.ts";
import { Missing, type RowStore, Unavailable } from "./rows.ts";
import type { Later, ReadTx } from "./tx.ts";

type Work<T> = (tx: ReadTx) => Later<T>;

/** An object, because `work` may return a promise: the next batch must not wait for it. */
interface Found<T> {
  readonly value: Later<T>;
}

/** What reads need from the group commit. */
export interface Batches {
  /** The number of committed transactions. */
  commits(): number;
  /** Resolves when no commit is in progress. */
  committed(): Promise<unknown>;
  /** Performs `work` between two batches. */
  alone<T>(work: () => Promise<T>): Promise<T>;
  /** Resolves after a commit that began now; rejects when this server cannot commit. */
  confirmed(): Promise<void>;
}

/**
 * Maximum number of times that a read is performed again for missing rows. Each time loads at least one more row, so reaching the limit is
 * a defect.
 */
const loadsMax = 10_000;
/** After this many commits that overtake a read, the read delays the next batch. */
const overtakenMax = 3;

export class CommittedReads {
  readonly #store: RowStore;
  readonly #batches: Batches;
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
    for (let overtaken = 0; overtaken <= overtakenMax; overtaken++) {
      const found = await this.#perform(work, needed);
      if (found !== null) return found;
    }
    const found = await this.#batches.alone(() => this.#perform(work, needed));
    if (found === null) throw new Error("A commit came in the middle of a read that was alone.");
    return found;
  }

  /** Loads the needed rows, and adds further missing ones to `needed`. Returns null when a commit happened in between. */
  async #perform<T>(work: Work<T>, needed: Missing[]): Promise<Found<T> | null> {
    const tx = readTx();
    const commits = this.#batches.commits();
    let missing: readonly Missing[] = needed;
    for (let loads = 0; loads < loadsMax; loads++) {
      await this.#load(tx, missing);
      if (this.#batches.commits() !== commits) return null;
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

  async #load(tx: ReadTx, missing: readonly Missing[]): Promise<void> {
    try {
      await this.#store.load(tx, missing);
    } catch (thrown) {
      throw thrown instanceof Unavailable ? unavailableError(thrown) : thrown;
    }
    // The load may have read rows of a commit that this process has not yet seen complete.
    await this.#batches.committed();
  }
}

function readTx(): ReadTx {
  return { isOperation: false, loaded: new Map() };
}
