// A database that counts the rows that are read and written in one turn of the event loop, by all requests together.

import { type Database, openDatabase, type SqlRow, type Statement } from "../../src/store/sqlite/driver.ts";

export function countingRows() {
  const counted = { longest: 0, open };
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
      return statement.get(...values);
    },
    all(...values) {
      const all = statement.all(...values);
      count(all.length);
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
