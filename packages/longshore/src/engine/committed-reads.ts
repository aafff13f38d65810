// Reads outside of operations. They see what is committed: at once where the store reads synchronously. Where it does not, a read that misses
// rows loads them and is performed again. The rows are its own: an operation never finds what was loaded before the last commit.
//
// A commit that comes between may make what was loaded older than what memory has. Then all of it is loaded again, in one go; and a read that
// is overtaken several times is performed between two batches.

import { unavailableError } from "./commit-errors.ts";
import { Missing, type RowStore, Unavailable } from "./rows.ts";
import type { Later, ReadTx } from "./tx.ts";

type Work<T> = (tx: ReadTx) => Later<T>;

/** What reads have to know of the batches. */
export interface Batches {
  /** How many transactions were committed. */
  commits(): number;
  /** Resolves when no commit is under way. */
  committed(): Promise<unknown>;
  /** Performs `work` between two batches. */
  alone<T>(work: () => Promise<T>): Promise<T>;
}

/** Times that a read is performed again for rows that were missing: each needs at least one more row, so this is a defect. */
const loadsMax = 10_000;
/** Times that commits may overtake a read before it holds up the next batch. */
const overtakenMax = 3;

export class CommittedReads {
  readonly #store: RowStore;
  readonly #batches: Batches;
  /** Nothing is ever loaded for it. */
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
      return work(this.#atOnce);
    } catch (thrown) {
      if (thrown instanceof Missing) return this.#whenLoaded(work, thrown.all);
      throw thrown;
    }
  }

  async #whenLoaded<T>(work: Work<T>, first: readonly Missing[]): Promise<T> {
    const needed = [...first];
    for (let overtaken = 0; overtaken <= overtakenMax; overtaken++) {
      const found = await this.#perform(work, needed);
      if (found !== null) return found.value;
    }
    // Wrapped: what the work returns may be a promise, and the next batch does not wait for that.
    const found = await this.#batches.alone(() => this.#perform(work, needed));
    if (found === null) throw new Error("A commit came in the middle of a read that was alone.");
    return found.value;
  }

  /** Loads what is needed, and notes what it needs besides. Null when a commit came between. */
  async #perform<T>(work: Work<T>, needed: Missing[]): Promise<{ value: Later<T> } | null> {
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
    // Rows of a commit whose end is not known here yet may have been read.
    await this.#batches.committed();
  }
}

function readTx(): ReadTx {
  return { isOperation: false, loaded: new Map() };
}
