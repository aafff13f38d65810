// Data files of every earlier schema version, as text. The code that wrote them no longer exists, but their data must still be served.

import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it, onTestFinished } from "vitest";
import { type OpenEngine, openEngineWithStore } from "../../../test/support/engine.ts";
import { sampleId } from "../../protocols/workflow-graph/dialect/sample.ts";
import { TestClock } from "../../testing/clock.ts";
import { type Database, openDatabase } from "./driver.ts";
import { migrate, schemaVersion } from "./schema.ts";

const fixtures = fileURLToPath(new URL("../../../test/fixtures/schema/", import.meta.url));
const versions = readdirSync(fixtures)
  .map((name) => Number.parseInt(name, 10))
  .sort((a, b) => a - b);
/** The workflow of the fixtures has eight steps. */
const stepsMax = 8;

function schemaOf(db: Database): unknown[] {
  return db.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY type, name").all();
}

async function openFixture(version: number): Promise<OpenEngine> {
  const directory = mkdtempSync(join(tmpdir(), "longshore-schema-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const db = await openDatabase(join(directory, "written.db"), { synchronous: "NORMAL" });
  db.exec("PRAGMA foreign_keys=OFF");
  db.exec(readFileSync(join(fixtures, `${version}.sql`), "utf8"));
  db.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  db.close();
  // A copy, because this process may still have the original open.
  copyFileSync(join(directory, "written.db"), join(directory, "longshore.db"));
  const engine = await openEngineWithStore({ directory, clock: new TestClock() });
  onTestFinished(() => engine.close());
  return engine;
}

async function workToTheEnd(engine: OpenEngine): Promise<void> {
  for (let step = 0; step < stepsMax; step++) {
    const names = [...engine.store.board.lanes.all()].map(({ lane }) => lane.name);
    const { tasks } = await engine.store.board.claim({ reach: { names, labels: [] }, holder: "ann", termMs: 60_000, max: 1 });
    for (const { id, grant } of tasks) expect(await engine.board.complete({ taskId: id, grant }, "null")).toBe("ok");
  }
}

it("every earlier version has a fixture: scripts/schema-fixtures.ts writes that of the newest version", () => {
  const earlier = Array.from({ length: schemaVersion - 1 }, (_, at) => at + 1);
  expect(versions).toEqual(expect.arrayContaining(earlier));
});

describe.each(versions)("a data file of schema version %i", (version) => {
  it("gets the tables of a new file", async () => {
    const engine = await openFixture(version);
    const fresh = await openDatabase(":memory:");
    migrate(fresh);
    expect(schemaOf(engine.store.db)).toEqual(schemaOf(fresh));
    expect(engine.store.db.prepare("PRAGMA user_version").get()).toEqual({ user_version: schemaVersion });
    expect(engine.store.db.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    fresh.close();
  });

  it("keeps its runs, keys, logs and blobs, and its open run can be completed", async () => {
    const engine = await openFixture(version);
    const { items } = await engine.reader.runs({ limit: 10 });
    expect(items.map(({ state, input }) => [state, input])).toEqual([
      ["running", '{"kept":"as it was"}'],
      ["cancelled", "null"],
    ]);
    const open = items[0]?.id as string;
    expect(await engine.runs.start({ workflow: sampleId, input: `{"kept":"as it was"}`, key: "open" })).toMatchObject({
      created: false,
      run: { id: open },
    });
    expect(await engine.logStore.lastLine(`${open}.0`)).toContain("a line");
    expect(engine.store.db.prepare("SELECT count(*) AS count FROM blob").get()).toEqual({ count: 1 });
    await workToTheEnd(engine);
    expect((await engine.reader.run(open))?.state).toBe("succeeded");
  });
});
