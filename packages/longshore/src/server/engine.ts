// The server without its doors: a store, the board, runs, and what stands beside them. Everything that serves or works is built on one
// of these, whether over a socket or in the same process.

import { Board } from "../board/board.ts";
import type { Task } from "../board/task.ts";
import { type Clock, systemClock } from "../clock.ts";
import { codeDialect } from "../dialect/code/dialect.ts";
import { workflowGraphDialect } from "../dialect/workflow-graph/compile.ts";
import { idMaker, type MakeId } from "../ids.ts";
import type { Dialect } from "../run/dialect.ts";
import type { Run } from "../run/run.ts";
import { brainOf, Runs } from "../run/runs.ts";
import { openSqliteStore, type SqliteStore } from "../store/sqlite/store.ts";

export interface EngineOptions {
  /** The folder of the data file; null keeps everything in memory. */
  directory: string | null;
  clock?: Clock;
  random?: () => number;
}

/** Hears of every task and run that a commit changed. */
export interface ChangeListener {
  task?(task: Task): void;
  run?(run: Run): void;
}

export interface Engine {
  readonly clock: Clock;
  readonly makeId: MakeId;
  readonly store: SqliteStore;
  readonly board: Board;
  readonly runs: Runs;
  /** Ends with the function that is returned. A listener must not throw. */
  listen(listener: ChangeListener): () => void;
  close(): Promise<void>;
}

export async function openEngine(options: EngineOptions): Promise<Engine> {
  const clock = options.clock ?? systemClock;
  const random = options.random ?? Math.random;
  const makeId = idMaker();
  const dialects = new Map<string, Dialect>([codeDialect, workflowGraphDialect].map((dialect) => [dialect.name, dialect]));
  const listeners = new Set<ChangeListener>();
  const store = await openSqliteStore({
    directory: options.directory,
    clock,
    random,
    brain: brainOf(dialects),
    hooks: {
      deadline: (id, at) => board.deadline(id, at),
      taskChanged: (task) => {
        board.changed(task);
        for (const listener of listeners) listener.task?.(task);
      },
      runChanged: (run) => {
        runs.changed(run);
        for (const listener of listeners) listener.run?.(run);
      },
      messagesLeft: () => runs.carry(),
    },
  });
  const board = new Board({ store: store.board, clock });
  const runs = new Runs({ store: store.runs, clock, makeId, dialects });
  store.recover();
  let closing: Promise<void> | undefined;
  return {
    clock,
    makeId,
    store,
    board,
    runs,
    listen(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    close() {
      closing ??= (async () => {
        board.close();
        await runs.close();
        store.close();
      })();
      return closing;
    },
  };
}
