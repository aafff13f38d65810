// The interfaces that every database implements. A store keeps rows and finds them again; the engine, which is built on this value, decides
// what they mean.

import type { Clock } from "../core/clock.ts";
import type { LongshoreError } from "../core/errors.ts";
import type { BlobContents } from "./blob/contents.ts";
import type { RowStore } from "./rows.ts";
import type { Later } from "./tx.ts";

/** How long a server may write after the last reply of the store. */
export interface Lease {
  /** Counts the servers that have had the data. */
  readonly epoch: number;
  /** The time that is left without a renewal; 0 when another server may have taken over. */
  readonly msLeft: number;
}

/** A file, or a table with its indexes, and how many bytes it takes. */
export interface StoredSize {
  readonly name: string;
  readonly bytes: number;
}

export interface Store {
  /** The store's name in logs: `the data file`, `PostgreSQL`. */
  readonly shown: string;
  /** True when a server has written to this store before: it may be an older copy of data that changed later. */
  readonly wasServed: boolean;
  /** Rows by key and by index, and their transactions. */
  readonly rows: RowStore;
  /** The time that all servers of this store agree on; absent for a store on one machine. */
  readonly clock?: Clock;
  /** The right to write, which other servers could take; absent for a store on one machine. */
  readonly lease?: () => Lease;
  readonly contents: BlobContents;
  /** Runs the checks that take too long for the start, and calls `refuse` when data is damaged. */
  checkRest(refuse: (damage: LongshoreError) => void): void;
  /** The bytes that it takes; absent for a store in memory. */
  size?(): Promise<readonly StoredSize[]>;
  /** The bytes of each table with its indexes; absent for a store in memory. It may take seconds, but does not hold up the process. */
  tableSizes?(): Promise<readonly StoredSize[]>;
  /** Adds advice to an error during the start, if the machine caused the error. */
  inWords(error: unknown): unknown;
  /** Called once, after the last commit. */
  close(): Later<void>;
}
