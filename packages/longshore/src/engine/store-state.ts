// Whether the store can be written, and how much it has: what health and metrics report.

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

  /** How many transactions were committed. */
  get commits(): number {
    return this.#commit.commits;
  }

  /** Null when writing works; else why it does not. */
  get unavailable(): LongshoreError | null {
    return this.#commit.unavailable;
  }

  /** Looks whether what was committed is still in its place, for a store that is not written to. */
  look(): void {
    this.#commit.lookForFile();
  }

  /** Writes something that means nothing; rejects when the store cannot be written. */
  tryWrite(): Promise<void> {
    return this.#commit.run((tx) => this.#stored.amounts.of("tries to write").add(tx, 1));
  }

  /** What all that is stored takes, by kind. */
  rooms(): Iterable<Room> {
    return this.#stored.all();
  }
}
