// The disk of simulated servers: one database in memory, which one life after the other uses, and a copy of its rows for the checks.
// SQLite's own change notifications keep the copy up to date.

import type { TaskRow } from "../../src/engine/board/task.ts";
import { Unwritten } from "../../src/engine/board/unwritten-endings.ts";
import type { Gate } from "../../src/engine/run/gate.ts";
import type { Message, Run } from "../../src/engine/run/run.ts";
import { gateTable } from "../../src/engine/tables/gate.ts";
import { runOf } from "../../src/engine/tables/run.ts";
import { taskOf } from "../../src/engine/tables/task.ts";
import { type Database, openDatabase, type Statement } from "../../src/store/sqlite/driver.ts";
import { migrate } from "../../src/store/sqlite/schema.ts";

export interface Stored {
  /** The tasks as every reader gets them: tasks of an ended run have ended, although their rows may be written later. */
  readonly tasks: ReadonlyMap<string, TaskRow>;
  /** The tasks as they are stored. */
  readonly rows: ReadonlyMap<string, TaskRow>;
  readonly runs: ReadonlyMap<string, Run>;
  readonly gates: readonly Gate[];
  /** Messages between runs that wait to be processed. */
  readonly messages: readonly Message[];
}

/** Called for each row that has changed, once for each read. */
export interface DiskWatch {
  task(task: TaskRow): void;
  run(run: Run): void;
}

export interface Disk {
  readonly db: Database;
  watch: DiskWatch | null;
  /** Everything that is committed. */
  read(): Stored;
  /** Resets it for the next simulation. */
  wipe(): void;
  close(): void;
}

export async function openDisk(): Promise<Disk> {
  const raw = await openDatabase(":memory:");
  // Statements are prepared once for all lives, because this is most of the cost of starting one.
  const statements = new Map<string, Statement>();
  const prepare = (sql: string): Statement => {
    const statement = statements.get(sql) ?? raw.prepare(sql);
    statements.set(sql, statement);
    return statement;
  };
  const db: Database = { ...raw, prepare };
  migrate(db);
  const tables = raw.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").all();
  const touches = ["task", "run"].flatMap((table) =>
    ["INSERT", "UPDATE"].map(
      (verb) =>
        `CREATE TEMP TRIGGER ${table}_${verb} AFTER ${verb} ON ${table} BEGIN INSERT INTO touched VALUES ('${table}', NEW.id); END;`,
    ),
  );
  raw.exec(`CREATE TEMP TABLE touched (kind TEXT, id TEXT, PRIMARY KEY (kind, id) ON CONFLICT IGNORE); ${touches.join("\n")}`);
  const touched = raw.prepare("SELECT kind, id FROM touched");
  const forget = raw.prepare("DELETE FROM touched");
  const oneTask = raw.prepare(`SELECT * FROM task WHERE id = ?`);
  const oneRun = raw.prepare(`SELECT * FROM run WHERE id = ?`);
  const messages = raw.prepare("SELECT body FROM message");
  const gates = raw.prepare("SELECT * FROM gate");
  const mirror = { tasks: new Map<string, TaskRow>(), runs: new Map<string, Run>() };
  const disk: Disk = {
    db,
    watch: null,
    read() {
      const changed = touched.all() as { kind: string; id: string }[];
      for (const { kind, id } of changed) {
        if (kind === "task") mirror.tasks.set(id, taskOf(oneTask.get(id) ?? {}));
        else mirror.runs.set(id, runOf(oneRun.get(id) ?? {}));
      }
      if (changed.length > 0) forget.run();
      if (disk.watch !== null) tellOf(changed, disk.watch);
      const waiting = messages.all().map(({ body }) => JSON.parse(body as string) as Message);
      return {
        tasks: seen(mirror.tasks, waiting),
        rows: mirror.tasks,
        runs: mirror.runs,
        gates: gates.all().map((row) => gateTable.of(row)),
        messages: waiting,
      };
    },
    wipe() {
      disk.watch = null;
      raw.exec(
        `PRAGMA foreign_keys=OFF; ${tables.map(({ name }) => `DELETE FROM ${name as string};`).join(" ")} DELETE FROM touched; PRAGMA foreign_keys=ON`,
      );
      mirror.tasks.clear();
      mirror.runs.clear();
    },
    close: () => raw.close(),
  };

  function tellOf(changed: readonly { kind: string; id: string }[], watch: DiskWatch): void {
    for (const { kind, id } of changed) {
      if (kind === "task") watch.task(mirror.tasks.get(id) as TaskRow);
      else watch.run(mirror.runs.get(id) as Run);
    }
  }
  return disk;
}

/** The tasks of runs about which something is decided that is not written yet, as it will be. */
function seen(rows: ReadonlyMap<string, TaskRow>, waiting: readonly Message[]): ReadonlyMap<string, TaskRow> {
  const unwritten = new Unwritten();
  for (const message of waiting) {
    if (message.kind === "end-tasks") unwritten.ended.restore(message.runId, { endedAt: message.endedAt });
    if (message.kind === "forget-tasks") unwritten.forgotten.restore(message.runId, { at: message.at, attempts: new Map(message.steps) });
  }
  if (unwritten.ended.isEmpty(false) && unwritten.forgotten.isEmpty(false)) return rows;
  return new Map(Array.from(rows, ([id, task]) => [id, unwritten.seen(task, false)]));
}
