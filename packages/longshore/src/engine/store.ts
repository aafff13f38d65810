// What a store brings: the interfaces that a second database implements. A store keeps rows and finds them again; what they mean is decided
// by the engine, which is put together on this value.

import type { Clock } from "../core/clock.ts";
import type { LongshoreError } from "../core/errors.ts";
import type { BlobContents } from "./blob/contents.ts";
import type { RowStore } from "./rows.ts";
import type { Later } from "./tx.ts";

export interface Store {
  /** A server has written to it before: it may be a copy of what that one made of it later. */
  readonly wasServed: boolean;
  /** Rows by key and by index, and their transactions. */
  readonly rows: RowStore;
  /** The time that all servers on it agree on; absent where there is one machine. */
  readonly clock?: Clock;
  /** Contents of blobs. */
  readonly contents: BlobContents;
  /** Checks what was too much for the start, and calls `refuse` when that is damaged. */
  checkRest(refuse: (damage: LongshoreError) => void): void;
  /** An error of the start with what to do about it, where it is a matter of the machine. */
  inWords(error: unknown): unknown;
  /** Called once, after the last commit. */
  close(): Later<void>;
}
