// Opens a data file and puts board, runs, documents and parts together on its rows.

import type { Clock } from "../core/clock.ts";
import type { Quotas } from "../core/quotas.ts";
import type { Slices } from "../core/slices/slices.ts";
import { LocalBoard } from "../engine/board/local-board.ts";
import type { TaskRow } from "../engine/board/task.ts";
import { GroupCommit } from "../engine/commit.ts";
import { LocalParts } from "../engine/part/local-parts.ts";
import type { RowStore } from "../engine/rows.ts";
import { LocalDocuments } from "../engine/run/local-documents.ts";
import { LocalRuns } from "../engine/run/local-runs.ts";
import type { Run } from "../engine/run/run.ts";
import type { Brain } from "../engine/run/store.ts";
import { StoredBytes } from "../engine/stored-bytes.ts";
import { inWords, openDataFile } from "../store/sqlite/data-file.ts";
import type { Database, openDatabase } from "../store/sqlite/driver.ts";
import { sqliteRows } from "../store/sqlite/row-store.ts";

/** Called after each commit. Hints for waiters and views: correctness never depends on them. */
export interface StoreHooks {
  /** When something next happens to `id` by itself; null for never again. */
  deadline(id: string, at: number | null): void;
  taskChanged(task: TaskRow): void;
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
  /** What all that is stored may take together. */
  quotas?: Partial<Quotas>;
  /** Bounds what readers do in one turn of the event loop. */
  slices?: Slices;
  /** How a database is opened. Replaced in tests by one that fails on purpose. */
  open?: typeof openDatabase;
  /** Replaces the rows in tests, by some that are read later. */
  wrap?: (rows: RowStore) => RowStore;
  /** Serve a damaged data file: what can be read of it. */
  acceptDamage?: boolean;
  /** Tasks of a run that one transaction cancels, and that are read at once. Replaced in tests. */
  sliceTasks?: number;
  /** Gets what an operator should know about the data folder, in sentences. */
  warn?: (message: string) => void;
}

export interface SqliteStore {
  readonly db: Database;
  readonly rows: RowStore;
  readonly commit: GroupCommit;
  readonly stored: StoredBytes;
  readonly board: LocalBoard;
  readonly runs: LocalRuns;
  readonly documents: LocalDocuments;
  readonly parts: LocalParts;
  /** Rebuilds memory from the file; must be called once, when all listeners are attached. */
  recover(): Promise<void>;
  close(): Promise<void>;
}

export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { directory, clock, random, brain, hooks } = options;
  const file = await openDataFile(directory, options);
  try {
    const { db } = file;
    const rows = options.wrap?.(sqliteRows(db, file.isGone)) ?? sqliteRows(db, file.isGone);
    const commit = new GroupCommit(rows, () => clock.now());
    file.checkRest((damage) => commit.refuse(damage));
    const taskChanged = (task: TaskRow) => {
      runs.decisions.records.changed(task);
      parts.taskChanged(task);
      hooks.taskChanged(task);
    };
    const stored = new StoredBytes(rows, commit, options.quotas);
    const board = new LocalBoard({ store: rows, commit, stored, clock, random, changed: taskChanged, deadline: hooks.deadline });
    const parts = new LocalParts({ store: rows, commit, stored, clock, tasks: board.tasks, first: (tx, task) => runs.firstPart(tx, task) });
    const documents = new LocalDocuments({ store: rows, commit, clock, stored, slices: options.slices });
    const runs = new LocalRuns({
      documents,
      store: rows,
      commit,
      clock,
      random,
      brain,
      board,
      changed: hooks.runChanged,
      deadline: hooks.deadline,
      left: hooks.messagesLeft,
      familyRunsMax: options.quotas?.familyRuns,
      slices: options.slices,
      sliceTasks: options.sliceTasks,
    });
    return {
      db,
      rows,
      commit,
      stored,
      board,
      runs,
      documents,
      parts,
      async recover() {
        await stored.recover();
        await runs.recoverMessages();
        await board.recover();
        await runs.recover();
        hooks.messagesLeft();
      },
      async close() {
        await commit.close();
        file.close();
      },
    };
  } catch (error) {
    file.close();
    throw inWords(error, directory);
  }
}
