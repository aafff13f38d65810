// Reads tasks, runs and definitions from rows, for a server that does not own the data. Some rows are not up to date: the owner has
// renewals of holds in memory, and writes the tasks of an ended run in slices. A read of such rows throws `NeedsOwner`.

import { isOpen, type TaskRow } from "../board/task.ts";
import { NeedsOwner } from "../needs-owner.ts";
import type { RowStore, Scan } from "../rows.ts";
import { definitionTable } from "../tables/definition.ts";
import { runStateTable, runTable } from "../tables/run.ts";
import { taskTable } from "../tables/task.ts";
import type { ReadTx } from "../tx.ts";
import type { PlannedDefinitions } from "./definitions.ts";
import type { LocalReaderDeps } from "./local-reader.ts";
import type { LocalSummariesDeps } from "./local-summaries.ts";
import { messageTable } from "./messages.ts";
import { isRunOpen } from "./run.ts";

const anyMessage: Scan = { by: ["id"], limit: 1 };

type StoredRows = Pick<LocalReaderDeps, "tasks" | "runs" | "definitions" | "lanes"> & {
  readonly counts: LocalReaderDeps["counts"] & LocalSummariesDeps["counts"];
};

export function storedRows(store: RowStore, withPlan: PlannedDefinitions["withPlan"]): StoredRows {
  const tasks = store.table(taskTable);
  const runs = store.table(runTable);
  const states = store.table(runStateTable);
  const messages = store.table(messageTable);
  const definitions = store.table(definitionTable);
  /**
   * Returns the task if its row is up to date. A stored message shows that something is left to do for a run, such as a slice; messages are rarely
   * stored for longer than a moment.
   */
  const settled = (tx: ReadTx, task: TaskRow): TaskRow => {
    if (isOpen(task.state)) throw new NeedsOwner();
    if (task.runId === null) return task;
    const run = states.get(tx, task.runId);
    if (run === null || isRunOpen(run.state)) throw new NeedsOwner();
    for (const _ of messages.scan(tx, anyMessage)) throw new NeedsOwner();
    return task;
  };
  return {
    tasks: {
      get(tx, id) {
        const task = tasks.get(tx, id);
        return task === null ? null : settled(tx, task);
      },
      newest: (tx, _id, task) => settled(tx, task),
      kept: () => undefined,
    },
    runs: { get: (tx, id) => runs.get(tx, id), kept: () => undefined },
    definitions: {
      byId: (tx, id) => definitions.get(tx, id),
      withPlan,
      newest(tx, name) {
        const [newest = null] = definitions.scan(tx, { by: ["name", "version"], equal: [name], backwards: true, limit: 1 });
        return newest;
      },
    },
    lanes: {
      all() {
        throw new NeedsOwner();
      },
    },
    counts: {
      // This number only decides which index is used. PostgreSQL has an index of open runs in the order of their ids.
      openRuns: 0,
      get endedRuns(): number {
        throw new NeedsOwner();
      },
      get endedTasks(): number {
        throw new NeedsOwner();
      },
      counted: () => Promise.reject(new NeedsOwner()),
      stored: async () => null,
    },
  };
}
