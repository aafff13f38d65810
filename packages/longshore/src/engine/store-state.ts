// Whether the store can be written, and how much it has: what health and metrics report.

import type { LongshoreError } from "../core/errors.ts";
import type { GroupCommit, Writable } from "./commit.ts";
import type { RowStore } from "./rows.ts";
import type { Room, StoredBytes } from "./stored-bytes.ts";

export interface StoreStateDeps {
  store: RowStore;
  commit: GroupCommit;
  stored: StoredBytes;
}

export class StoreState {
  readonly #commit: GroupCommit;
  readonly #stored: StoredBytes;
  readonly #probe: Probe;

  constructor({ store, commit, stored }: StoreStateDeps) {
    this.#commit = commit;
    this.#stored = stored;
    this.#probe = new Probe(store, commit);
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

  /** Writes something that changes nothing; rejects when the store cannot be written. */
  tryWrite(): Promise<void> {
    return this.#probe.writeOnce();
  }

  /** What all that is stored takes, by kind. */
  rooms(): Iterable<Room> {
    return this.#stored.all();
  }
}

class Probe implements Writable {
  readonly #store: RowStore;
  readonly #commit: GroupCommit;
  dirty = false;

  constructor(store: RowStore, commit: GroupCommit) {
    this.#store = store;
    this.#commit = commit;
    commit.join(this);
  }

  write(): void {
    if (this.dirty) this.#store.touch();
  }

  applied(): void {
    this.dirty = false;
  }

  writeOnce(): Promise<void> {
    return this.#commit.run((tx) => {
      this.dirty = true;
      tx.undo(() => {
        this.dirty = false;
      });
    });
  }
}
