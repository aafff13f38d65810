// Writes the data file of a small server as SQL text, for the newest schema version, unless there is one: `npx tsx
// scripts/schema-fixtures.ts`. A fixture that was written is never written again: it is what a server of that version left behind.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sampleId, sampleSource } from "../packages/longshore/src/protocols/workflow-graph/dialect/sample.ts";
import { dialectName } from "../packages/longshore/src/protocols/workflow-graph/dialect/source.ts";
import { type Database, openDatabase } from "../packages/longshore/src/store/sqlite/driver.ts";
import { schemaVersion } from "../packages/longshore/src/store/sqlite/schema.ts";
import { TestClock } from "../packages/longshore/src/testing/clock.ts";
import { openEngineWithStore } from "../packages/longshore/test/support/engine.ts";

const fixture = fileURLToPath(new URL(`../packages/longshore/test/fixtures/schema/${schemaVersion}.sql`, import.meta.url));
/** Of the file, not of the server's data. */
const leftOut = new Set(["property", "sqlite_sequence"]);

if (existsSync(fixture)) process.stdout.write(`${fixture} is there already\n`);
else {
  const folder = mkdtempSync(join(tmpdir(), "longshore-fixture-"));
  await fill(folder);
  const db = await openDatabase(join(folder, "longshore.db"), { readOnly: true });
  writeFileSync(fixture, `${dump(db).join("\n")}\n`);
  db.close();
  rmSync(folder, { recursive: true });
  process.stdout.write(`wrote ${fixture}\n`);
}

/** A run that was cancelled, a run with a task that is done and others that wait, a log, a blob. */
async function fill(directory: string): Promise<void> {
  const engine = await openEngineWithStore({ directory, clock: new TestClock() });
  await engine.runs.define({ name: sampleId, dialect: dialectName, source: sampleSource });
  const ended = await engine.runs.start({ workflow: sampleId, input: "null", key: "ended" });
  await engine.runs.cancel(ended.run.id);
  const open = await engine.runs.start({ workflow: sampleId, input: `{"kept":"as it was"}`, key: "open" });
  const names = [...engine.store.board.lanes.all()].map(({ lane }) => lane.name);
  const { tasks } = await engine.store.board.claim({ reach: { names, labels: [] }, holder: "ann", termMs: 60_000, max: 1 });
  const task = tasks[0];
  if (task === undefined) throw new Error("No task was handed out.");
  const chunks = [{ stream: "stdout" as const, sequence: 0, data: "a line\n", at: 0 }];
  await engine.logs.append({ taskId: task.id, runId: open.run.id, attempt: 0, grant: task.grant, chunks });
  await engine.board.complete({ taskId: task.id, grant: task.grant }, "null");
  await engine.blobs.put(Buffer.from("content"));
  await engine.close();
}

function dump(db: Database): string[] {
  const schema = db
    .prepare("SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid")
    .all();
  const tables = schema.filter(({ type, name }) => type === "table" && !leftOut.has(String(name)));
  return [
    ...schema.map(({ sql }) => `${sql};`),
    ...tables.flatMap(({ name }) =>
      db
        .prepare(`SELECT * FROM ${name}`)
        .all()
        .map((row) => insertion(String(name), row)),
    ),
    `PRAGMA user_version=${schemaVersion};`,
  ];
}

function insertion(table: string, row: Record<string, unknown>): string {
  const given = Object.entries(row).filter(([, value]) => value !== null);
  const text = (value: unknown) => (typeof value === "number" ? String(value) : `'${String(value).replaceAll("'", "''")}'`);
  return `INSERT INTO ${table} (${given.map(([name]) => name).join(", ")}) VALUES (${given.map(([, value]) => text(value)).join(", ")});`;
}
