// A store with many ended runs, and retention that removes them. The test checks every transaction. Rows are copied with SQL.

import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { retentionPolicy } from "../../src/engine/run/retention.ts";
import { sampleSource } from "../../src/protocols/workflow-graph/dialect/sample.ts";
import { dialectName } from "../../src/protocols/workflow-graph/dialect/source.ts";
import { openSideStores } from "../../src/server/side-stores.ts";
import { type Database, openDatabase } from "../../src/store/sqlite/driver.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { openEngineWithStore } from "../support/engine.ts";
import { temporaryFolder } from "../support/parts.ts";
import { copyRow } from "./copy-row.ts";

const workflow = "much";
const dayMs = 86_400_000;
/** Rows that one transaction of retention may remove: the largest are 200 rows of other tables, or 100 runs with their keys and notes. */
const rowsMax = 300;
/** Bytes: the limit of a slice, and one row above it. */
const largeBytes = 1_500_000;
const bytesMax = 4 * 1_048_576 + largeBytes;
const largeRows = 4;
const tables = ["run", "task", "attempt", "log", "part", "part_uid", "run_key"] as const;

export async function removeMuch({ runs, rows }: { runs: number; rows: number }): Promise<void> {
  const directory = temporaryFolder();
  await fill(directory, runs, rows);
  const watched = watching();
  const clock = new TestClock();
  const engine = await openEngineWithStore({ directory, clock, open: watched.open });
  onTestFinished(() => engine.close());
  const { retention } = openSideStores(engine.store, { clock, slices: engine.slices });
  const counted = () => tables.map((table) => Number(engine.store.db.prepare(`SELECT count(*) AS rows FROM ${table}`).get()?.rows));
  expect(counted().every((count) => count > 0)).toBe(true);
  watched.begin();
  clock.jump(100 * dayMs);
  const short = { ageMs: dayMs, count: 1_000_000 };
  await retention.prune(retentionPolicy({ runs: short, tasks: short, logs: short, blobs: short }), clock.now());
  expect(watched.longest.rows).toBeLessThanOrEqual(rowsMax);
  expect(watched.longest.bytes).toBeLessThanOrEqual(bytesMax);
  expect(watched.longest.bytes).toBeGreaterThan(largeBytes);
  expect(counted()).toEqual(tables.map(() => 0));
}

async function fill(directory: string, runs: number, rows: number): Promise<void> {
  const engine = await openEngineWithStore({ directory, clock: new TestClock() });
  await engine.runs.define({ name: workflow, dialect: dialectName, source: sampleSource });
  const { run } = await engine.runs.start({ workflow, input: "null", key: "first" });
  await engine.runs.cancel(run.id);
  await engine.close();
  const db = await openDatabase(join(directory, "longshore.db"), { synchronous: "NORMAL" });
  copyRow(db, "run", runs, { id: "'run-' || printf('%06d', n)" });
  copyRow(db, "run", largeRows, { id: "'large-' || n", input: `printf('%.*c', ${largeBytes}, 'x')` }, `WHERE id = '${run.id}'`);
  const numbers = (count: number) => `WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ${count})`;
  const task = `'${run.id}.0'`;
  db.exec(`
    INSERT INTO attempt (task_id, grant_count, attempt, closed_by, queued_at, ended_at) ${numbers(rows)} SELECT ${task}, n, n, 'fail', 0, 0 FROM c;
    INSERT INTO attempt (task_id, grant_count, attempt, closed_by, queued_at, ended_at) ${numbers(rows)} SELECT 'alone', n, n, 'fail', 0, 0 FROM c;
    INSERT INTO log (task_id, run_id, attempt, grant_count, bytes, chunks) ${numbers(rows)} SELECT ${task}, '${run.id}', 0, 1, 100, '[]' FROM c;
    INSERT INTO part (task_id, life, sequence, uid, grant_count, at, value) ${numbers(rows)} SELECT ${task}, 0, n, 'u' || n, 1, 0, '1' FROM c;
    INSERT INTO part (task_id, life, sequence, uid, grant_count, at, value) ${numbers(largeRows)}
      SELECT ${task}, 1, n, 'u' || n, 1, 0, printf('%.*c', ${largeBytes}, 'x') FROM c;
    INSERT INTO part_uid (task_id, life, first, hashes) ${numbers(rows)} SELECT ${task}, 0, n, x'00' FROM c;`);
  copyRow(db, "task", rows, { id: "'alone-' || n", run_id: "NULL" }, `WHERE id = ${task}`);
  copyRow(db, "task", 1, { id: "'alone'", run_id: "NULL" }, `WHERE id = ${task}`);
  db.exec("UPDATE amount SET value = 1000000000 WHERE name LIKE 'bytes of %'");
  db.close();
}

/** A database whose triggers record every removed row. After each transaction, the recorded rows are counted and cleared. */
function watching() {
  const sizes = { run: "octet_length(OLD.input)", part: "octet_length(OLD.value)" };
  const watched = { longest: { rows: 0, bytes: 0 }, open, begin: () => {} };
  async function open(...given: Parameters<typeof openDatabase>): Promise<Database> {
    const db = await openDatabase(...given);
    let noted: (() => { rows: number; bytes: number }) | null = null;
    watched.begin = () => {
      db.exec("CREATE TEMP TABLE removed (bytes INTEGER)");
      for (const table of tables) {
        const bytes = table === "run" || table === "part" ? sizes[table] : "0";
        db.exec(`CREATE TEMP TRIGGER watch_${table} AFTER DELETE ON main.${table} BEGIN INSERT INTO removed VALUES (${bytes}); END`);
      }
      const count = db.prepare("SELECT count(*) AS rows, coalesce(sum(bytes), 0) AS bytes FROM removed");
      const forget = db.prepare("DELETE FROM removed");
      noted = () => {
        const row = count.get();
        forget.run();
        return { rows: Number(row?.rows), bytes: Number(row?.bytes) };
      };
    };
    const transaction = (work: () => void) => {
      db.transaction(work);
      if (noted === null) return;
      const { rows, bytes } = noted();
      watched.longest = { rows: Math.max(watched.longest.rows, rows), bytes: Math.max(watched.longest.bytes, bytes) };
    };
    return { ...db, transaction };
  }
  return watched;
}
