// Opens a data file and puts the parts of the SQLite store together.

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Task } from "../../board/task.ts";
import type { Clock } from "../../clock.ts";
import { LongshoreError, toError } from "../../errors.ts";
import type { Run } from "../../run/run.ts";
import type { Brain } from "../../run/store.ts";
import { SqliteBoard } from "./board.ts";
import { GroupCommit } from "./commit.ts";
import { SqliteDocuments } from "./documents.ts";
import { type Database, isLocked, isUnavailable, openDatabase } from "./driver.ts";
import { SqliteParts } from "./parts.ts";
import { SqliteRuns } from "./runs.ts";
import { migrate } from "./schema.ts";

/** Told after each commit. Hints for whoever waits or shows: correctness never depends on them. */
export interface StoreHooks {
  /** When something next happens to `id` by itself; null for never again. */
  deadline(id: string, at: number | null): void;
  taskChanged(task: Task): void;
  runChanged(run: Run): void;
  /** Runs have left messages for each other. */
  messagesLeft(): void;
}

export interface SqliteStoreOptions {
  /** The folder of the data file; null keeps everything in memory. */
  directory: string | null;
  clock: Clock;
  random: () => number;
  brain: Brain;
  hooks: StoreHooks;
  synchronous?: "FULL" | "NORMAL";
  /** How a database is opened. Replaced in tests by one that fails on purpose. */
  open?: typeof openDatabase;
}

export interface SqliteStore {
  readonly db: Database;
  readonly commit: GroupCommit;
  readonly board: SqliteBoard;
  readonly runs: SqliteRuns;
  readonly documents: SqliteDocuments;
  readonly parts: SqliteParts;
  /** Brings memory up to what the file says; to be called once, when everybody listens. */
  recover(): void;
  close(): void;
}

const fileName = "longshore.db";

export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { directory, clock, random, brain, hooks } = options;
  const release = directory === null ? () => {} : await lock(directory);
  try {
    const open = options.open ?? openDatabase;
    const db = await open(directory === null ? ":memory:" : join(directory, fileName), { synchronous: options.synchronous });
    try {
      migrate(db);
    } catch (error) {
      db.close();
      throw error;
    }
    const commit = new GroupCommit(db, () => clock.now());
    const taskChanged = (task: Task) => {
      parts.taskChanged(task);
      hooks.taskChanged(task);
    };
    const board = new SqliteBoard({ db, commit, clock, random, changed: taskChanged, deadline: hooks.deadline });
    const parts = new SqliteParts({ db, commit, clock, tasks: board.tasks, first: (task) => runs.firstPart(task) });
    const documents = new SqliteDocuments(db, commit, clock);
    const runs = new SqliteRuns({
      documents,
      db,
      commit,
      clock,
      random,
      brain,
      board,
      changed: hooks.runChanged,
      deadline: hooks.deadline,
      left: hooks.messagesLeft,
    });
    return {
      db,
      commit,
      board,
      runs,
      documents,
      parts,
      recover() {
        board.recover();
        runs.recover();
        hooks.messagesLeft();
      },
      close() {
        commit.close();
        db.close();
        release();
      },
    };
  } catch (error) {
    release();
    throw inWords(error, directory);
  }
}

/** A folder that cannot be used is a matter of the machine, not of the program: told with what to do about it. */
function inWords(error: unknown, directory: string | null): unknown {
  const { code } = error as { code?: unknown };
  if (directory === null || !(isUnavailable(error) || ["ENOSPC", "EDQUOT", "EROFS", "EACCES"].includes(String(code)))) return error;
  return new LongshoreError(
    "LONGSHORE_STORE_UNAVAILABLE",
    `The data folder ${directory} cannot be used: ${toError(error).message}. Make room or allow writing, or choose another folder with --data.`,
    { cause: error },
  );
}

/** One server per folder: two would hand out the same tasks. The lock is SQLite's own, so a killed process leaves none behind. */
async function lock(directory: string): Promise<() => void> {
  let db: Database | undefined;
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    db = await openDatabase(join(directory, "lock"), { synchronous: "NORMAL", journal: "DELETE", busyMs: 0 });
    db.exec("BEGIN EXCLUSIVE");
  } catch (cause) {
    db?.close();
    if (!isLocked(cause)) throw inWords(cause, directory);
    throw new LongshoreError(
      "LONGSHORE_CONFLICT",
      `Another Longshore server is using ${directory}: stop it first, or choose another folder with --data.`,
      { cause },
    );
  }
  const held = db;
  return () => {
    // Closing alone leaves the lock to the garbage collector: the driver keeps a connection open while it has prepared statements.
    held.exec("ROLLBACK");
    held.close();
  };
}
