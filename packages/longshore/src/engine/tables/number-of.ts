// Reads numbers that memory computes with from the start on. SQLite keeps a text in a column of numbers, when another program has written it;
// as the time of a task, such a text would make every later transaction fail.

import type { Row } from "../rows.ts";

/** Throws a TypeError for a value that is not a number. */
export function numberOf(row: Row, column: string): number {
  const value = row[column];
  if (typeof value === "number") return value;
  throw new TypeError(`the column ${column} of ${String(row.id)} has ${JSON.stringify(value)}, expected a number`);
}

/** The same, where null is allowed. */
export function numberOrNullOf(row: Row, column: string): number | null {
  return row[column] === null ? null : numberOf(row, column);
}
