// The tables of runs and of joins.

import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Column, Row, RowStore, TableSpec } from "../rows.ts";
import type { Join, Run, RunHead, RunState } from "../run/run.ts";
import { plainTable } from "./plain-table.ts";

/** Maximum number of open runs in memory; others are read when something happens to them. */
const runsKeptMax = 20_000;

/** Columns that are written once. */
const fixed: readonly Column<Run>[] = [
  ["id", (run) => run.id],
  ["workflow", (run) => run.workflow],
  ["definition_id", (run) => run.definitionId],
  ["input", (run) => run.input],
  ["created_at", (run) => run.createdAt],
  ["alias", (run) => run.alias],
  ["parent_task_id", (run) => run.parentTaskId],
  ["parent_attempt", (run) => run.parentAttempt],
  ["priority", (run) => run.priority],
  ["root_id", (run) => run.rootId],
  ["gate", (run) => run.gate],
];
/** What the end of a step changes, when nothing else follows from it. */
const counting: readonly Column<Run>[] = [
  ["active_count", (run) => run.active],
  ["left_count", (run) => run.left],
  ["recorded_count", (run) => run.recorded],
];
export const seldomChanging: readonly Column<Run>[] = [
  ["state", (run) => run.state],
  ["output", (run) => run.output],
  ["error", (run) => run.error],
  ["end_by", (run) => run.endBy],
  ["start_at", (run) => run.startAt],
  ["turn", (run) => run.turn],
  ["failed_count", (run) => run.failed],
  ["retries", (run) => run.retries],
  ["counted_from", (run) => run.countedFrom],
  ["variables", (run) => run.variables],
  ["backlog", (run) => run.backlog],
  ["skips", (run) => run.skips],
  ["signals", (run) => run.signals],
];
const changing = [...seldomChanging, ...counting];
/** Written once, except in the run of a durable function, where they are the state of the function. */
const settings: readonly Column<Run>[] = [["settings", (run) => run.settings]];
/** An open run has no `ended_at` on disk. Not writing it avoids an update of the index of open runs. */
const ending: readonly Column<Run>[] = [["ended_at", (run) => run.endedAt]];
const changingAtEnd = [...changing, ...ending];

export const runTable: TableSpec<Run> = { name: "run", key: ["id"], columns: [...fixed, ...settings, ...changing, ...ending], of: runOf };

/** For reads of only some columns: payloads may be long. */
export const runIdTable: TableSpec<Pick<Run, "id">> = {
  name: "run",
  key: ["id"],
  columns: [["id", (run) => run.id]],
  of: (row) => ({ id: row.id as string }),
};

/** Only columns that are stored before the texts of a row. */
export const runPlaceTable: TableSpec<Pick<Run, "id" | "workflow" | "state">> = {
  name: "run",
  key: ["id"],
  columns: ["id", "workflow", "state"].map((column) => [column, () => null] as const),
  of: (row) => ({ id: row.id as string, workflow: row.workflow as string, state: row.state as RunState }),
};

const texts = new Set(["input", "output", "error", "variables", "backlog", "skips"]);

/** Columns without the texts. */
export const runHeadTable: TableSpec<RunHead> = {
  name: "run",
  key: ["id"],
  columns: runTable.columns.filter(([name]) => !texts.has(name)).map(([name]) => [name, () => null] as const),
  of: runHeadOf,
};

/** For walks through many runs. */
export const runStateTable: TableSpec<Pick<Run, "id" | "state">> = {
  name: "run",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["state", ({ state }) => state],
  ],
  of: (row) => ({ id: row.id as string, state: row.state as RunState }),
};

export function runRows(store: RowStore, commit: GroupCommit, committed: (run: Run, before: Run | undefined) => void): Rows<Run> {
  const rows = store.table(runTable);
  return new Rows<Run>(commit, {
    load: (tx, id) => rows.get(tx, id),
    save(run, isNew, before) {
      // A run that starts again is written completely, over its earlier row.
      if (isNew) rows.write(run);
      else if (run.endedAt === null && before?.endedAt === null) rows.write(run, sameButCounts(before, run) ? counting : changing);
      else rows.write(run, changingAtEnd);
      if (!isNew && run.settings !== null && run.settings !== before?.settings) rows.write(run, settings);
    },
    remove: (id) => rows.remove([id]),
    chars: runChars,
    keep: (run) => (run.endedAt === null ? "while-room" : "no"),
    keptMax: runsKeptMax,
    remembersBefore: true,
    committed,
  });
}

/** Field by field, as for tasks. A test compares the lists. */
export function sameButCounts(one: Run, other: Run): boolean {
  return (
    one.state === other.state &&
    one.output === other.output &&
    one.error === other.error &&
    one.endBy === other.endBy &&
    one.startAt === other.startAt &&
    one.turn === other.turn &&
    one.failed === other.failed &&
    one.retries === other.retries &&
    one.countedFrom === other.countedFrom &&
    one.variables === other.variables &&
    one.backlog === other.backlog &&
    one.skips === other.skips &&
    one.signals === other.signals
  );
}

function runChars({ input, output, variables, backlog, skips }: Run): number {
  return input.length + [output, variables, backlog, skips].reduce((sum, text) => sum + (text?.length ?? 0), 0);
}

export function runOf(row: Row): Run {
  return {
    ...runHeadOf(row),
    input: row.input as string,
    output: row.output as string | null,
    error: row.error as string | null,
    variables: row.variables as string | null,
    backlog: row.backlog as string | null,
    skips: row.skips as string | null,
  };
}

function runHeadOf(row: Row): RunHead {
  return {
    id: row.id as string,
    workflow: row.workflow as string,
    definitionId: row.definition_id as string,
    state: row.state as RunState,
    createdAt: row.created_at as number,
    endedAt: row.ended_at as number | null,
    endBy: row.end_by as number | null,
    startAt: row.start_at as number | null,
    gate: row.gate as string | null,
    turn: row.turn as number | null,
    active: row.active_count as number,
    left: row.left_count as number,
    failed: row.failed_count as number,
    recorded: row.recorded_count as number,
    retries: row.retries as number,
    countedFrom: row.counted_from as number,
    priority: row.priority as number,
    settings: row.settings as string | null,
    alias: row.alias as string | null,
    parentTaskId: row.parent_task_id as string | null,
    parentAttempt: row.parent_attempt as number,
    rootId: row.root_id as string | null,
    signals: row.signals as string | null,
  };
}

export function joinKey(runId: string, node: number): string {
  return `${runId}.${node}`;
}

const joinTable: TableSpec<Join> = {
  name: "node_join",
  key: ["run_id", "node"],
  columns: [
    ["run_id", (join) => join.runId],
    ["node", (join) => join.node],
    ["left_count", (join) => join.left],
    ["begun", (join) => (join.begun ? 1 : 0)],
    ["missed", (join) => join.missed],
  ],
  of: (row) => ({
    runId: row.run_id as string,
    node: row.node as number,
    left: row.left_count as number,
    begun: row.begun === 1,
    missed: row.missed as number,
  }),
};

export function joinRows(store: RowStore, commit: GroupCommit): Rows<Join> {
  const rows = store.table(joinTable);
  return new Rows<Join>(commit, {
    load(tx, key) {
      const dot = key.lastIndexOf(".");
      return rows.get(tx, key.slice(0, dot), Number(key.slice(dot + 1)));
    },
    save: (join) => rows.write(join),
    keep: () => "no",
    keptMax: 0,
  });
}

/** A run that was started with a key, by which it is found again. */
export interface StartKey {
  workflow: string;
  key: string;
  runId: string;
}

export const runKeyTable = plainTable<StartKey>("run_key", ["workflow", "key"], { workflow: "workflow", key: "key", runId: "run_id" });
