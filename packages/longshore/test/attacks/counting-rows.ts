// A database that counts, for each turn of the event loop, the rows that are read and written, and the characters of the rows that are
// read.

import { onTestFinished, vi } from "vitest";
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

/** Counts the records whose newest version is looked up in one turn of the event loop. */
export function lookedAt(tasks: { newest(...given: never[]): unknown }) {
  return callsInTurn(tasks, "newest");
}

/** Counts the calls of a method in one turn of the event loop. */
export function callsInTurn<Name extends string>(object: { [name in Name]: (...given: never[]) => unknown }, name: Name) {
  const counted = { longest: 0 };
  const called = object[name];
  let now = 0;
  const spy = vi.spyOn(object as { [name: string]: (...given: never[]) => unknown }, name).mockImplementation((...given) => {
    if (now === 0)
      setImmediate(() => {
        now = 0;
      });
    counted.longest = Math.max(counted.longest, ++now);
    return called.apply(object, given);
  });
  onTestFinished(() => spy.mockRestore());
  return counted;
}
