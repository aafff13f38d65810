// Whether the store can be written, and how much it contains, for health and metrics.

import type { LongshoreError } from "../core/errors.ts";
import type { GroupCommit } from "./commit.ts";
import type { Room, StoredBytes } from "./stored-bytes.ts";

export interface StoreStateDeps {
  commit: GroupCommit;
  stored: StoredBytes;
}

export class StoreState {
  readonly #commit: GroupCommit;
  readonly #stored: StoredBytes;

  constructor({ commit, stored }: StoreStateDeps) {
    this.#commit = commit;
    this.#stored = stored;
  }

  /** The number of committed transactions. */
  get commits(): number {
    return this.#commit.commits;
  }

  /** The number of operations in these transactions. */
  get operations(): number {
    return this.#commit.operations;
  }

  /** Why the store cannot be written; null when it can. */
  get unavailable(): LongshoreError | null {
    return this.#commit.unavailable;
  }

  /** Checks that the data file is in its place, for a store that is not being written. */
  look(): void {
    this.#commit.lookForFile();
  }

  /** Writes a test value; rejects when the store cannot be written. */
  tryWrite(): Promise<void> {
    return this.#commit.run((tx) => this.#stored.amounts.of("tries to write").add(tx, 1));
  }

  /** The space that stored data takes, by kind. */
  rooms(): Iterable<Room> {
    return this.#stored.all();
  }
}
