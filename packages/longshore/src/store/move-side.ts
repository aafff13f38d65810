// One side of a migration: data in a folder or in PostgreSQL, which no server uses meanwhile. Both have the same tables.

import type { BlobContents } from "../engine/blob/contents.ts";
import type { Value } from "../engine/rows.ts";
import type { Mark, Marks } from "./marks.ts";

export type ColumnKind = "text" | "int8" | "bytea";

export interface MovedTable {
  readonly name: string;
  /** Sorted by name. */
  readonly columns: readonly { readonly name: string; readonly kind: ColumnKind }[];
  /** The columns of the primary key; none when rows may be equal. */
  readonly key: readonly string[];
}

/** The values of a row, in the order of the table's columns. */
export type MovedRow = readonly Value[];

export interface Side {
  /** For people: without a password. */
  readonly place: string;
  /** The command that removes the mark of data that were moved away from this side. */
  readonly undo: string;
  readonly marks: Marks;
  readonly contents: BlobContents;
  /** All tables that have data of the engine, as the database itself describes them. */
  tables(): Promise<MovedTable[]>;
  count(table: MovedTable): Promise<number>;
  /** All rows, each page bounded in rows and bytes. */
  pages(table: MovedTable): AsyncIterable<readonly MovedRow[]>;
  /** Removes all rows except those that describe the place (`placeProperties`). */
  clear(tables: readonly MovedTable[]): Promise<void>;
  insert(table: MovedTable, rows: readonly MovedRow[]): Promise<void>;
  /** Makes everything that was inserted durable. */
  settle(tables: readonly MovedTable[]): Promise<void>;
  /** Sets a mark, or removes it, durably. */
  mark(name: keyof Marks, mark: Mark | null): Promise<void>;
  close(): Promise<void>;
}

/** Maximum number of rows of one page. */
export const pageRowsMax = 1_000;
/** Maximum number of bytes of one page; the row that reaches it is included. */
export const pageBytesMax = 4 * 1_024 * 1_024;

export function bytesOf(row: MovedRow): number {
  return row.reduce<number>(
    (sum, value) => sum + (typeof value === "string" ? value.length : value instanceof Uint8Array ? value.byteLength : 8),
    0,
  );
}

export function byName(one: { readonly name: string }, other: { readonly name: string }): number {
  return one.name < other.name ? -1 : 1;
}
