// The attacker holds a worker token, which may store schemas, task definitions and the state of workers. To find the newest of ten thousand
// versions of a schema, the server read all of them, which blocked the event loop for seconds. Thousands of large documents stayed in memory.

import { expect, it, onTestFinished, vi } from "vitest";
import { GroupCommit } from "../../src/engine/commit.ts";
import { LocalDocuments } from "../../src/engine/run/local-documents.ts";
import { StoredBytes } from "../../src/engine/stored-bytes.ts";
import { type Database, openDatabase, type Statement } from "../../src/store/sqlite/driver.ts";
import { sqliteRows } from "../../src/store/sqlite/row-store.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { openParts, places } from "../support/parts.ts";

/** Documents in a store that counts the rows that are read. */
async function counting() {
  const clock = new TestClock();
  const db = await openDatabase(":memory:");
  onTestFinished(() => db.close());
  migrate(db);
  const read = { rows: 0 };
  const counted = (sql: string, statement: Statement): Statement => ({
    run: (...values) => statement.run(...values),
    get: (...values) => {
      // Writes are also executed with `get`.
      if (/^\s*SELECT/i.test(sql)) read.rows++;
      return statement.get(...values);
    },
    all: (...values) => {
      const rows = statement.all(...values);
      read.rows += rows.length;
      return rows;
    },
    *iterate(...values) {
      for (const row of statement.iterate(...values)) {
        read.rows++;
        yield row;
      }
    },
  });
  const counter: Database = {
    prepare: (sql) => counted(sql, db.prepare(sql)),
    exec: (sql) => db.exec(sql),
    transaction: (work) => db.transaction(work),
    close: () => db.close(),
  };
  const rows = sqliteRows(counter, () => null);
  const commit = new GroupCommit(rows, () => clock.now());
  const stored = new StoredBytes(rows, commit);
  return { documents: new LocalDocuments({ store: rows, commit, clock, stored }), read };
}

const kind = "schema";

it("the newest of very many versions is found with a few reads, also while others are written and removed", async () => {
  const { documents, read } = await counting();
  const versions = 5_000;
  const kept = Array.from({ length: versions }, (_, at) => documents.keepDocument({ kind, name: "s", version: at + 1, body: "{}" }));
  await Promise.all(kept);
  read.rows = 0;
  expect((await documents.document(kind, "s"))?.version).toBe(versions);
  expect(read.rows).toBeLessThanOrEqual(3);
  await documents.keepDocument({ kind, name: "s", version: versions + 1, body: "{}" });
  expect((await documents.document(kind, "s"))?.version).toBe(versions + 1);
  await documents.removeDocument(kind, "s", versions + 1);
  expect((await documents.document(kind, "s"))?.version).toBe(versions);
  expect(await documents.removeDocument(kind, "s")).toBe(versions);
  expect(await documents.document(kind, "s")).toBeUndefined();
});

it("a write does not count all documents", async () => {
  const { documents, read } = await counting();
  await documents.keepDocument({ kind, name: "first", version: 1, body: "{}" });
  read.rows = 0;
  for (let at = 0; at < 100; at++) await documents.keepDocument({ kind, name: `s${at}`, version: 1, body: "{}" });
  // Each is searched for once.
  expect(read.rows).toBe(100);
});

it("large documents are not kept in memory", async () => {
  const { documents, read } = await counting();
  const readsFor = async (name: string, chars: number): Promise<number> => {
    await documents.keepDocument({ kind, name, version: 1, body: JSON.stringify("x".repeat(chars)) });
    read.rows = 0;
    await documents.document(kind, name, 1);
    return read.rows;
  };
  expect(await readsFor("small", 1_000)).toBe(0);
  expect(await readsFor("large", 1_000_000)).toBe(1);
});

it.each(places)("very many versions of a document are removed in transactions of a limited size, with %s", async (place) => {
  const parts = await openParts(place);
  const documents = new LocalDocuments(parts);
  const [versions, others] = [600, 3];
  for (let version = 1; version <= versions; version++) await documents.keepDocument({ kind: "k", name: "many", version, body: "{}" });
  for (let version = 1; version <= others; version++) {
    await documents.keepDocument({ kind: "k", name: "large", version, body: "x".repeat(1_000_000) });
  }
  const run = vi.spyOn(parts.commit, "run");
  expect(await documents.removeDocument("k", "many")).toBe(versions);
  expect(run.mock.calls.length).toBeGreaterThanOrEqual(3);
  run.mockClear();
  expect(await documents.removeDocument("k", "large")).toBe(others);
  expect(run.mock.calls.length).toBeGreaterThanOrEqual(2);
  expect(await documents.document("k", "many")).toBeUndefined();
  expect(parts.stored.of("documents").used).toBe(0);
});
