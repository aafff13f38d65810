import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { type OpenSqliteStore, openSqliteStore } from "../../test/support/sqlite-store.ts";
import { type Database, openDatabase } from "../store/sqlite/driver.ts";
import { migrate, schemaVersion } from "../store/sqlite/schema.ts";
import { TestClock } from "../testing/clock.ts";

const folders: string[] = [];
const stores: OpenSqliteStore[] = [];
afterEach(() => {
  for (const store of stores.splice(0)) store.close();
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "longshore-store-"));
  folders.push(made);
  return made;
}

function optionsFor(directory: string | null) {
  const never = () => {
    throw new Error("Nothing is decided here.");
  };
  return {
    directory,
    clock: new TestClock(),
    random: () => 0.5,
    brain: { plan: never, planInTurns: never, decide: never },
    hooks: { deadline: () => {}, taskChanged: () => {}, runChanged: () => {}, messagesLeft: () => {} },
  };
}

async function open(directory: string | null): Promise<OpenSqliteStore> {
  const store = await openSqliteStore(optionsFor(directory));
  stores.push(store);
  return store;
}

describe("the SQLite store", () => {
  it("uses a write-ahead log and syncs every commit to the disk", async () => {
    const { db } = await open(folder());
    expect(db.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    expect(db.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
  });

  it("creates its folder, readable by its owner only", async () => {
    const directory = join(folder(), "deep", "data");
    await open(directory);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
  });

  it("reports when its folder cannot be used, and what to do", async () => {
    const full = () => Promise.reject(Object.assign(new Error("database or disk is full"), { errcode: 13 }));
    await expect(openSqliteStore({ ...optionsFor(folder()), open: full })).rejects.toMatchObject({
      code: "LONGSHORE_STORE_UNAVAILABLE",
      message: expect.stringMatching(/^The data folder \S+ cannot be used: database or disk is full\. Make room/),
    });
  });

  it("keeps nothing when it is in memory, and may be opened any number of times", async () => {
    await open(null);
    await open(null);
  });

  it("refuses a file of a newer version, and does not change it", async () => {
    const directory = folder();
    const db = await openDatabase(join(directory, "longshore.db"));
    db.exec(`PRAGMA user_version=${schemaVersion + 1}`);
    db.close();
    await expect(open(directory)).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: expect.stringContaining("a newer Longshore wrote it"),
    });
    const after = await openDatabase(join(directory, "longshore.db"));
    expect(after.prepare("SELECT count(*) AS count FROM sqlite_schema").get()).toEqual({ count: 0 });
    after.close();
    // The refusal released the lock.
    await expect(open(directory)).rejects.toMatchObject({ code: "LONGSHORE_BAD_CONFIG" });
  });

  it("moves the commands of an earlier version to their own lane, but not tasks that have the lane's old name", async () => {
    const db = await openDatabase(":memory:");
    migrate(db, 7);
    const row = { state: "'queued'", lane: "'command'" };
    for (const dialect of ["workflow-graph", "conductor"]) {
      db.exec(
        `INSERT INTO definition (id, name, version, dialect, source, created_at) VALUES ('${dialect}', 'n-${dialect}', 1, '${dialect}', '', 1)`,
      );
      insert(db, "run", { id: `'r-${dialect}'`, definition_id: `'${dialect}'` });
      insert(db, "task", { id: `'t-${dialect}'`, run_id: `'r-${dialect}'`, ...row });
    }
    insert(db, "task", { id: "'loose'", ...row });
    migrate(db);
    expect(db.prepare("SELECT id, lane FROM task ORDER BY id").all()).toMatchObject([
      { id: "loose", lane: "command" },
      { id: "t-conductor", lane: "command" },
      { id: "t-workflow-graph", lane: "$command" },
    ]);
    db.close();
  });

  it("refuses all operations after it is closed", async () => {
    const { board, close } = await open(null);
    stores.pop();
    await close();
    await expect(board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs: 1, max: 1 })).rejects.toMatchObject({
      code: "LONGSHORE_CLOSED",
    });
  });
});

/** A row with these values, and with 0 in other columns that must have a value. */
function insert(db: Database, table: string, values: { [column: string]: string }): void {
  const columns = db.prepare(`SELECT name, "notnull" AS required FROM pragma_table_info('${table}')`).all();
  const row = Object.fromEntries(columns.filter(({ required }) => required === 1).map(({ name }) => [name as string, "0"]));
  const whole = { ...row, ...values };
  db.exec(`INSERT INTO ${table} (${Object.keys(whole).join(", ")}) VALUES (${Object.values(whole).join(", ")})`);
}
