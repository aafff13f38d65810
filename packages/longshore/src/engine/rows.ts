// The row-level port that a store implements: tables described as data, rows by key and by index, and one transaction at a time. A store
// decides nothing: what a row means and when it changes is the engine's business.

import type { LongshoreError } from "../core/errors.ts";
import type { ReadTx } from "./tx.ts";

export type Value = string | number | null | Uint8Array;

/** A row as the database has it, by the names of its columns. */
export type Row = { readonly [column: string]: unknown };

/** A column, and the value of a record that is stored in it. */
export type Column<R> = readonly [name: string, value: (record: R) => Value];

/** A table: what its rows are made from, and what is made from them. */
export interface TableSpec<R> {
  readonly name: string;
  /** The columns of its primary key, in order. */
  readonly key: readonly string[];
  /** All columns that are written and read. */
  readonly columns: readonly Column<R>[];
  /** Bytes of columns together, by a name: read with a row, without the columns themselves. */
  readonly sizes?: readonly (readonly [name: string, columns: readonly string[]])[];
  of(row: Row): R;
}

/** Rows in the order of an index. */
export interface Scan {
  /** The columns of the index, or the first of them. */
  readonly by: readonly string[];
  /** Values of the first columns of `by`. */
  readonly equal?: readonly Value[];
  /** For the columns after those: only rows behind these values. */
  readonly above?: readonly Value[];
  /** Only rows before these values. */
  readonly below?: readonly Value[];
  /** A column, or several, that must be null. */
  readonly without?: string | readonly string[];
  /** A column that must not be null. */
  readonly having?: string;
  /** Columns with a value, or one of several, that are known when the program is written: a store may have an index for them alone. */
  readonly only?: { readonly [column: string]: string | number | readonly string[] };
  /** Texts that a column must contain, all of them. */
  readonly containing?: { readonly column: string; readonly texts: readonly string[] };
  /** The index for it, where a database would choose another that has more rows. */
  readonly index?: string;
  /** From the end. */
  readonly backwards?: boolean;
  readonly limit?: number;
  /** Rows that are passed before the first one. */
  readonly offset?: number;
  /** No index has this order: the store sorts keys, and reads the other columns of the rows that remain. */
  readonly keysFirst?: boolean;
  /** Its reader stops once these columns have had so much: a store that reads row by row ignores it, another one reads little more. */
  readonly enough?: Enough;
  /** Only rows that belong to any row of another table, found in one go for all of those, in no order; without bounds. */
  readonly ownedBy?: Owners;
}

/** How much of a scan is read. At least the row with which it is reached is there; a reader counts by itself, as stores differ by a factor of three. */
export interface Enough {
  /** Characters of texts, bytes of others; numbers and sizes count as what they are. */
  readonly chars: number;
  readonly of: readonly string[];
}

/** The rows that others belong to. */
export interface Owners {
  /** Their table, whose key is one column: `id`. The first column of the scan has that id, */
  readonly table: string;
  /** or it begins with the id and a dot. */
  readonly within?: boolean;
}

/** What rows of a scan have together. */
export interface Total {
  readonly rows: number;
  readonly sum: number;
}

/** The rows of one table. Reads may throw `Missing`, until it was loaded for their transaction; changes belong into a commit. */
export interface TableRows<R> {
  get(tx: ReadTx, ...key: Value[]): R | null;
  scan(tx: ReadTx, scan: Scan): Iterable<R>;
  /** How many rows a scan has, and their sum over a column or one of the sizes; its order and limit do not count. */
  total(tx: ReadTx, scan: Scan, name?: string): Total;
  /** Writes new rows. The commit throws `Taken` where there is one with the same key. */
  insert(records: readonly R[]): void;
  /**
   * Writes all columns, over the row with the same key if there is one; or only some columns, of a row that is there. A store prepares a
   * statement for each list of columns: the same list is passed each time.
   */
  write(record: R, columns?: readonly Column<R>[]): void;
  /** Removes the row with this key, or all rows of a scan, whose order and limit do not count. */
  remove(rows: readonly Value[] | Scan): void;
}

/** Whether these are the values of a key, and not a scan. */
export function isKey(rows: readonly Value[] | Scan): rows is readonly Value[] {
  return Array.isArray(rows);
}

export interface RowStore {
  table<R>(spec: TableSpec<R>): TableRows<R>;
  /**
   * Makes all that `write` changes durable, or nothing of it. Throws `Unavailable` when the reason is the machine and not the rows: the same rows
   * may be written later.
   */
  commit(write: () => void): void | Promise<void>;
  /** Reads what was missing into `tx.loaded`, where the reads of that transaction find it when they are performed again. */
  load(tx: ReadTx, missing: readonly Missing[]): Promise<void>;
  /** An error when what was committed cannot be found again: it was written to a file that is not in its place any more. */
  isGone(): LongshoreError | null;
}

/** Thrown by a store that cannot be written or read now. */
export class Unavailable extends Error {
  /** What cannot be done, and what an operator may do about it. */
  readonly what: string;
  readonly advice: string;

  constructor(cause: Error, what = "The data file cannot be written now", advice = "Make room on the disk") {
    super(cause.message, { cause });
    this.what = what;
    this.advice = advice;
  }
}

/** Thrown by a commit that inserts a row with a key that is there. */
export class Taken extends Error {
  constructor(cause: Error) {
    super(cause.message, { cause });
  }
}

/**
 * Thrown by a read that the store cannot do synchronously. The group commit takes the operation back, loads the row, and performs it again.
 */
export class Missing extends Error {
  /** What the store needs to load it; or several others. */
  readonly read: unknown;
  readonly all: readonly Missing[];

  constructor(read: unknown) {
    super("The rows are not at hand.");
    this.read = read;
    this.all = Array.isArray(read) ? (read as Missing[]).flatMap(({ all }) => all) : [this];
  }
}

/** Several reads: those that are missing are loaded together. */
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

/** Work that reads rows one after another. Where one is missing, all of `reads` are tried, so that what is missing of them is loaded at once. */
export function together<T>(work: () => T, reads: () => readonly (() => unknown)[]): T {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof Missing) readAll(reads(), (read) => read());
    throw thrown;
  }
}
