// A database that counts the rows that are read and written in one turn of the event loop, by all requests together; and characters of rows
// that are read.

import { type Database, openDatabase, type SqlRow, type Statement } from "../../src/store/sqlite/driver.ts";

export function countingRows() {
  const counted = { longest: 0, chars: 0, open };
  let rows = 0;
  let turning = false;
  const count = (more: number) => {
    rows += more;
    counted.longest = Math.max(counted.longest, rows);
    if (turning) return;
    turning = true;
    setImmediate(() => {
      turning = false;
      rows = 0;
    });
  };
  function* each(read: Iterable<SqlRow>): IterableIterator<SqlRow> {
    for (const row of read) {
      count(1);
      counted.chars += charsOf(row);
      yield row;
    }
  }
  const watched = (statement: Statement): Statement => ({
    run(...values) {
      count(1);
      return statement.run(...values);
    },
    get(...values) {
      count(1);
      const row = statement.get(...values);
      counted.chars += row === undefined ? 0 : charsOf(row);
      return row;
    },
    all(...values) {
      const all = statement.all(...values);
      count(all.length);
      for (const row of all) counted.chars += charsOf(row);
      return all;
    },
    iterate: (...values) => each(statement.iterate(...values)),
  });
  async function open(...given: Parameters<typeof openDatabase>): Promise<Database> {
    const db = await openDatabase(...given);
    return { ...db, prepare: (sql) => watched(db.prepare(sql)) };
  }
  return counted;
}

function charsOf(row: SqlRow): number {
  let chars = 0;
  for (const value of Object.values(row)) if (typeof value === "string") chars += value.length;
  return chars;
}
