// The tables that lists and views read, and the best index for each of their filters.

import type { TaskRow } from "../board/task.ts";
import { type RowStore, readAll, type Scan, type TableRows } from "../rows.ts";
import type { DefinitionName } from "../run/catalogue.ts";
import type { AttemptView } from "../run/reader.ts";
import { isRunOpen, type Run, type RunHead, type RunState } from "../run/run.ts";
import type { ReadTx } from "../tx.ts";
import { attemptHeadTable, attemptViewTable } from "./attempt.ts";
import { definitionNameTable } from "./definition.ts";
import { runHeadTable, runStateTable, runTable } from "./run.ts";
import { type TaskPlace, taskHeadTable, taskPlaceTable } from "./task.ts";

export interface ReaderTables {
  readonly runs: TableRows<Run>;
  readonly runHeads: TableRows<RunHead>;
  readonly runStates: TableRows<Pick<Run, "id" | "state">>;
  readonly taskHeads: TableRows<TaskRow>;
  readonly taskPlaces: TableRows<TaskPlace>;
  readonly attempts: TableRows<AttemptView>;
  readonly attemptHeads: TableRows<AttemptView>;
  readonly names: TableRows<DefinitionName>;
}

export function readerTables(store: RowStore): ReaderTables {
  return {
    runs: store.table(runTable),
    runHeads: store.table(runHeadTable),
    runStates: store.table(runStateTable),
    taskHeads: store.table(taskHeadTable),
    taskPlaces: store.table(taskPlaceTable),
    attempts: store.table(attemptViewTable),
    attemptHeads: store.table(attemptHeadTable),
    names: store.table(definitionNameTable),
  };
}

/** Tasks that a worker has or may take, and those that wait without a lane. Each half has an index of its own, so neither passes the other. */
export const openTasks: Scan = { by: ["id"], without: "ended_at", having: "lane", index: "task_open" };
const openWaits: Scan = { by: ["id"], without: ["ended_at", "lane"], index: "task_wait" };

/** Open tasks with and without a lane, in the order of their ids. The caller may stop early: rows that it does not take are not read. */
export function* scanOpen<R>(
  tx: ReadTx,
  rows: TableRows<R>,
  bounds: Pick<Scan, "above" | "below" | "backwards"> & { readonly limit: number },
  idOf: (row: R) => string,
): Generator<R, void, void> {
  const halves = readAll([openTasks, openWaits], (scan) => rows.scan(tx, { ...scan, ...bounds })[Symbol.iterator]());
  try {
    const next = readAll(halves, (half) => half.next());
    for (let taken = 0; taken < bounds.limit; taken++) {
      const [task, wait] = next as [IteratorResult<R>, IteratorResult<R>];
      if (task.done && wait.done) return;
      const isTask = wait.done || (!task.done && idOf(task.value) < idOf(wait.value) === !bounds.backwards);
      const at = isTask ? 0 : 1;
      yield (next[at] as IteratorYieldResult<R>).value;
      next[at] = (halves[at] as Iterator<R>).next();
    }
  } finally {
    for (const half of halves) half.return?.();
  }
}

/** How many open runs are sorted for a list: about a millisecond. */
const sortMax = 2_000;
/** States with an index of their own: few runs end like this. */
const unsuccessful: readonly RunState[] = ["failed", "cancelled", "timed-out"];

/** Runs of some workflows, in some states, or all: one scan, or several whose rows are merged. The caller compares states and workflows. */
export function runsInAll({ workflows, states }: RunLists, openRuns: number): Scan[] {
  const few = states?.every((state) => unsuccessful.includes(state));
  if (workflows !== undefined && !few) return workflows.map((workflow) => runsIn(workflow, undefined, openRuns));
  const scans = (states ?? [undefined]).map((state) => runsIn(undefined, state, openRuns));
  const all = scans.find(({ by, without }) => by.length === 1 && without === undefined);
  if (all !== undefined) return [all];
  // The open states share an index.
  const open = scans.find(({ without }) => without !== undefined);
  return [...scans.filter(({ without }) => without === undefined), ...(open === undefined ? [] : [open])];
}

export interface RunLists {
  readonly workflows?: readonly string[] | undefined;
  readonly states?: readonly RunState[] | undefined;
}

/** Runs of a workflow, in a state, or all. */
export function runsIn(workflow: string | undefined, state: RunState | undefined, openRuns: number): Scan {
  if (workflow !== undefined) return { by: ["workflow", "id"], equal: [workflow] };
  if (state === undefined || state === "succeeded") return { by: ["id"] };
  if (!isRunOpen(state)) return { by: ["state", "id"], equal: [state], only: { state: unsuccessful } };
  // Sorting them all would cost more than skipping those that have ended.
  if (openRuns > sortMax) return { by: ["id"] };
  // Sorts the open runs, because far more runs have ended. SQLite by itself would scan all runs instead.
  return { by: ["id"], without: "ended_at", index: "run_open" };
}
