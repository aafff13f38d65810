// The row-level port that a store implements: tables described as data, rows by key and by index, and one transaction at a time. A store
// decides nothing: the engine decides what a row means and when it changes.

import type { LongshoreError } from "../core/errors.ts";
import { Missing } from "../core/missing.ts";
import type { ReadTx } from "./tx.ts";

export type Value = string | number | null | Uint8Array;

/** Above every text in the order of bytes. */
export const lastText = "\u{10ffff}";

/** A row of the database, by column name. */
export type Row = { readonly [column: string]: unknown };

/** The name of a column, and a function that returns its value for a record. */
export type Column<R> = readonly [name: string, value: (record: R) => Value];

/** A table: how records become rows, and rows become records. */
export interface TableSpec<R> {
  readonly name: string;
  /** The columns of its primary key, in order. */
  readonly key: readonly string[];
  /** All columns that are written and read. */
  readonly columns: readonly Column<R>[];
  /** Named sums of the bytes of columns: read with a row, without the columns themselves. */
  readonly sizes?: readonly (readonly [name: string, columns: readonly string[]])[];
  /**
   * The values that some columns have in most new rows. A store may write them as part of the statement, because each value that is passed
   * to a statement costs time.
   */
  readonly usual?: { readonly [column: string]: null | number };
  of(row: Row): R;
}

/** Rows in the order of an index. */
export interface Scan {
  /** The columns of the index, or the first of them. */
  readonly by: readonly string[];
  /** Values of the first columns of `by`. */
  readonly equal?: readonly Value[];
  /** For the columns after those of `equal`: only rows after these values. */
  readonly above?: readonly Value[];
  /** For the same columns: only rows before these values. */
  readonly below?: readonly Value[];
  /** A column, or several, that must be null. */
  readonly without?: string | readonly string[];
  /** A column, or several, that must not be null. */
  readonly having?: string | readonly string[];
  /** Two columns: only rows in which the first has the greater value. */
  readonly greater?: readonly [column: string, than: string];
  /**
   * Columns that must have a value, or one of several. The values are constants of the program, so a store may have an index for only these
   * rows.
   */
  readonly only?: { readonly [column: string]: string | number | readonly string[] };
  /** Texts that a column must contain, all of them. */
  readonly containing?: { readonly column: string; readonly texts: readonly string[] };
  /** The index for the scan. Set when a database would choose another index with more rows. */
  readonly index?: string;
  /** Reads from the end. */
  readonly backwards?: boolean;
  readonly limit?: number;
  /** The number of rows to skip. */
  readonly offset?: number;
  /** True when no index has this order: the store sorts keys first, then reads the other columns of the remaining rows. */
  readonly keysFirst?: boolean;
  /** The reader stops after this much data. A store that reads row by row ignores it; other stores read little more than that. */
  readonly enough?: Enough;
  /** Only rows that belong to a row of another table. They are found for all of those rows at once, in no order and without bounds. */
  readonly ownedBy?: Owners;
}

/**
 * How much of a scan is read. The row that reaches the limit is included. The reader must also count by itself, because stores differ by a
 * factor of three.
 */
export interface Enough {
  /** Characters of texts, bytes of binary values; numbers and sizes count by their value. */
  readonly chars: number;
  readonly of: readonly string[];
}

/** The rows that the scanned rows belong to. */
export interface Owners {
  /** The table of the owners. Its key is one column, `id`. */
  readonly table: string;
  /** The first column of the scan starts with the owner's id and a dot. Default: it equals the id. */
  readonly within?: boolean;
}

/** Totals over the rows of a scan. */
export interface Total {
  readonly rows: number;
  readonly sum: number;
}

/**
 * The rows of one table. Reads may throw `Missing` until the row was loaded for their transaction; changes are allowed only in a commit.
 */
export interface TableRows<R> {
  get(tx: ReadTx, ...key: Value[]): R | null;
  scan(tx: ReadTx, scan: Scan): Iterable<R>;
  /** The number of rows of a scan, and the sum over a column or one of the sizes. Order and limit of the scan are ignored. */
  total(tx: ReadTx, scan: Scan, name?: string): Total;
  /** Writes new rows. The commit throws `Taken` when a row with the same key exists. */
  insert(records: readonly R[]): void;
  /**
   * Writes all columns, and replaces the row with the same key if it exists; or writes only `columns` of an existing row. A store prepares
   * a statement for each array of columns, so callers must pass the same array each time.
   */
  write(record: R, columns?: readonly Column<R>[]): void;
  /** Removes the row with this key, or all rows of a scan, whose order and limit are ignored. */
  remove(rows: readonly Value[] | Scan): void;
}

/** True for the values of a key, false for a scan. */
export function isKey(rows: readonly Value[] | Scan): rows is readonly Value[] {
  return Array.isArray(rows);
}

export interface RowStore {
  table<R>(spec: TableSpec<R>): TableRows<R>;
  /**
   * Makes all changes of `write` durable, or none. Throws `Unavailable` when the cause is the machine and not the rows: the same rows may
   * be written later.
   */
  commit(write: () => void): void | Promise<void>;
  /**
   * Loads missing rows into `tx.loaded`, where the reads of that transaction find them when they are performed again. Outside of operations
   * a store may return which version all of these rows are of, or `torn` when a commit came between them.
   */
  load(tx: ReadTx, missing: readonly Missing[]): Promise<number | "torn" | undefined>;
  /**
   * The version of the data after the last commit that has returned. Each commit raises it. Absent for a store whose loads have no version.
   */
  version?(): number;
  /** Returns whether memory is valid without a write. False while another server may have taken over the data. */
  isOwned(): boolean;
  /** Returns an error when committed data cannot be found again, because the file is not in its place any more. */
  isGone(): LongshoreError | null;
}

/** Thrown by a store that cannot be written or read now. */
export class Unavailable extends Error {
  /** What fails, and what the operator can do about it. */
  readonly what: string;
  readonly advice: string;

  constructor(cause: Error, what = "The data file cannot be written now", advice = "Make room on the disk") {
    super(cause.message, { cause });
    this.what = what;
    this.advice = advice;
  }
}

/** Thrown by a commit that inserts a row whose key exists. */
export class Taken extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/** Performs several reads: all missing rows are loaded together. */
export function readAll<T, V>(items: readonly T[], read: (item: T) => V): V[] {
  const values: V[] = [];
  const missing: Missing[] = [];
  for (const item of items) {
    try {
      values.push(read(item));
    } catch (thrown) {
      if (!(thrown instanceof Missing)) throw thrown;
      missing.push(thrown);
    }
  }
  if (missing.length > 0) throw new Missing(missing);
  return values;
}

/** Performs work that reads rows one after another. When a row is missing, all of `reads` are tried, so that all are loaded at once. */
export function together<T>(work: () => T, reads: () => readonly (() => unknown)[]): T {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof Missing) readAll(reads(), (read) => read());
    throw thrown;
  }
}
