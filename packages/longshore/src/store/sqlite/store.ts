// Opens a data file and puts the parts of the SQLite store together.

import type { Task } from "../../board/task.ts";
import type { Clock } from "../../clock.ts";
import type { Quotas } from "../../quotas.ts";
import type { Run } from "../../run/run.ts";
import type { Brain } from "../../run/store.ts";
import type { Slices } from "../../slices.ts";
import { SqliteBoard } from "./board.ts";
import { GroupCommit } from "./commit.ts";
import { inWords, openDataFile } from "./data-file.ts";
import { SqliteDocuments } from "./documents.ts";
import type { Database, openDatabase } from "./driver.ts";
import { SqliteParts } from "./parts.ts";
import { SqliteRuns } from "./runs.ts";
import { StoredBytes } from "./stored-bytes.ts";

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
  /** What all that is stored may take together. */
  quotas?: Partial<Quotas>;
  /** Bounds what readers do in one turn of the event loop. */
  slices?: Slices;
  /** How a database is opened. Replaced in tests by one that fails on purpose. */
  open?: typeof openDatabase;
  /** Serve a damaged data file: what can be read of it. */
  acceptDamage?: boolean;
  /** Gets what an operator should know about the data folder, in sentences. */
  warn?: (message: string) => void;
}

export interface SqliteStore {
  readonly db: Database;
  readonly commit: GroupCommit;
  readonly stored: StoredBytes;
  readonly board: SqliteBoard;
  readonly runs: SqliteRuns;
  readonly documents: SqliteDocuments;
  readonly parts: SqliteParts;
  /** Brings memory up to what the file says; to be called once, when everybody listens. */
  recover(): void;
  close(): void;
}

export async function openSqliteStore(options: SqliteStoreOptions): Promise<SqliteStore> {
  const { directory, clock, random, brain, hooks } = options;
  const file = await openDataFile(directory, options);
  try {
    const { db } = file;
    const commit = new GroupCommit(db, () => clock.now(), file.isGone);
    file.checkRest((damage) => commit.refuse(damage));
    const taskChanged = (task: Task) => {
      parts.taskChanged(task);
      hooks.taskChanged(task);
    };
    const stored = new StoredBytes(db, commit, options.quotas);
    const board = new SqliteBoard({ db, commit, stored, clock, random, changed: taskChanged, deadline: hooks.deadline });
    const parts = new SqliteParts({ db, commit, stored, clock, tasks: board.tasks, first: (task) => runs.firstPart(task) });
    const documents = new SqliteDocuments({ db, commit, clock, stored, slices: options.slices });
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
      familyRunsMax: options.quotas?.familyRuns,
    });
    return {
      db,
      commit,
      stored,
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
        file.close();
      },
    };
  } catch (error) {
    file.close();
    throw inWords(error, directory);
  }
}
