// The table of tasks: how they are read, written, and which of them stay in memory.

import { checkName } from "../../core/names.ts";
import type { LimitKey } from "../board/limits.ts";
import type { Lane, TaskRow, TaskState, Verb } from "../board/task.ts";
import { copyOf } from "../board/task-copy.ts";
import { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { Column, Row, RowStore, TableSpec } from "../rows.ts";
import { faultOfRow, faultText } from "./fault.ts";
import { numberOf, numberOrNullOf } from "./number-of.ts";

/** Maximum number of queued tasks whose payloads stay in memory; those of a longer backlog are read when they are claimed. */
const queuedKeptMax = 20_000;

/** Columns that are written once. */
const fixed: readonly Column<TaskRow>[] = [
  ["id", (task) => task.id],
  ["run_id", (task) => task.runId],
  ["node", (task) => task.node],
  ["step", (task) => task.step],
  ["lane", (task) => task.lane?.name ?? null],
  ["labels", (task) => labelsText(task.lane)],
  ["priority", (task) => task.priority],
  ["input", (task) => task.input],
  ["policy", (task) => task.policy],
  ["limits", (task) => (task.limits.length === 0 ? null : JSON.stringify(task.limits))],
  ["hold_ms", (task) => task.holdMs],
  ["claim_ms", (task) => task.claimMs],
  ["end_ms", (task) => task.endMs],
  ["posted_at", (task) => task.postedAt],
  ["total_by", (task) => task.totalBy],
  ["signal", (task) => task.signal],
  ["command", (task) => task.command],
];
/** Columns that change when the task is queued, for the first time or again. */
export const queueing: readonly Column<TaskRow>[] = [
  ["sequence", (task) => task.sequence],
  ["attempt", (task) => task.attempt],
  ["first_attempt", (task) => task.firstAttempt],
  ["ordinal", (task) => task.ordinal],
  ["failures", (task) => task.failures],
  ["lost", (task) => task.lost],
  ["deferrals", (task) => task.deferrals],
  ["attempt_at", (task) => task.attemptAt],
  ["queued_at", (task) => task.queuedAt],
  ["due_at", (task) => task.dueAt],
];
/** Columns that change when the task is handed out. */
export const holding: readonly Column<TaskRow>[] = [
  ["state", (task) => task.state],
  ["grant_count", (task) => task.grant],
  ["holder", (task) => task.holder],
  ["term_ms", (task) => task.termMs],
  ["started_at", (task) => task.startedAt],
  ["claimed_at", (task) => task.claimedAt],
  ["claim_by", (task) => task.claimBy],
  ["hold_until", (task) => task.holdUntil],
  ["end_by", (task) => task.endBy],
];
/** Columns that change when a report closes a hand-out. */
export const closing: readonly Column<TaskRow>[] = [
  ["output", (task) => task.output],
  ["error", (task) => task.error],
  ["fault", faultText],
  ["closed_grant", (task) => task.closedGrant],
  ["closed_by", (task) => task.closedBy],
  ["closed_receipt", (task) => task.closedReceipt],
];
/** An open task has no `ended_at` on disk. Not writing it avoids an update of both indexes. */
export const ending: readonly Column<TaskRow>[] = [["ended_at", (task) => task.endedAt]];

/** Set once for few tasks, and written only then, with a separate statement. */
const streaming: readonly Column<TaskRow>[] = [["streamed", (task) => (task.streamed ? 1 : 0)]];

/** Columns that change together. Most tasks are handed out once and end once: unchanged columns are not written (0.1 us a value). */
const goingOn = [...queueing, ...holding, ...closing];
const atEnd = [...holding, ...closing, ...ending];
/** The end of most tasks: the holder of the last commit has reported an output. */
const changedByOutput = ["state", "hold_until", "output", "closed_grant", "closed_by", "closed_receipt", "ended_at"];
export const atPlainEnd: readonly Column<TaskRow>[] = atEnd.filter(([name]) => changedByOutput.includes(name));
const anything = [...goingOn, ...ending, ...streaming];

export const taskTable: TableSpec<TaskRow> = {
  name: "task",
  key: ["id"],
  columns: [...fixed, ...queueing, ...holding, ...closing, ...ending, ...streaming],
  usual: usualOf(
    ["run_id", "labels", "policy", "limits", "hold_ms", "claim_ms", "end_ms", "total_by", "signal", "command", "claim_by", "end_by"],
    ["output", "error", "fault", "closed_by", "closed_receipt", "ended_at"],
    ["node", "priority", "attempt", "first_attempt", "ordinal", "failures", "lost", "deferrals", "closed_grant", "streamed"],
  ),
  of: taskOf,
};

/** A task that belongs to no run and has no options, queued or handed out for the first time. */
function usualOf(unset: readonly string[], notYet: readonly string[], zero: readonly string[]): { [column: string]: null | number } {
  return Object.fromEntries([...[...unset, ...notYet].map((name) => [name, null]), ...zero.map((name) => [name, 0])]);
}

/** For scans that need no texts: the rows are read without them. */
export const taskHeadTable: TableSpec<TaskRow> = {
  ...taskTable,
  columns: taskTable.columns.filter(([name]) => name !== "input" && name !== "output"),
};

/** The bytes of the texts of a task, for readers that bound what they read at once. */
export const taskSizeTable: TableSpec<{ readonly id: string; readonly bytes: number }> = {
  name: "task",
  key: ["id"],
  columns: [["id", ({ id }) => id]],
  sizes: [["bytes", ["input", "output"]]],
  of: (row) => ({ id: row.id as string, bytes: row.bytes as number }),
};

/** The fields of a queued task that the board keeps in memory. */
export type OpenTask = Pick<
  TaskRow,
  "id" | "lane" | "priority" | "state" | "sequence" | "queuedAt" | "dueAt" | "claimBy" | "holdUntil" | "endBy" | "totalBy"
>;

/** For the start, which reads all open tasks: a quarter of the columns takes less than half of the time. */
export const openTaskTable: TableSpec<OpenTask> = {
  name: "task",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["lane", ({ lane }) => lane?.name ?? null],
    ["labels", ({ lane }) => labelsText(lane)],
    ["priority", ({ priority }) => priority],
    ["state", ({ state }) => state],
    ["sequence", ({ sequence }) => sequence],
    ["queued_at", ({ queuedAt }) => queuedAt],
    ["due_at", ({ dueAt }) => dueAt],
    ["claim_by", ({ claimBy }) => claimBy],
    ["hold_until", ({ holdUntil }) => holdUntil],
    ["end_by", ({ endBy }) => endBy],
    ["total_by", ({ totalBy }) => totalBy],
  ],
  of: (row) => ({
    id: row.id as string,
    lane: laneOf(row),
    priority: numberOf(row, "priority"),
    state: row.state as TaskState,
    sequence: numberOf(row, "sequence"),
    queuedAt: numberOf(row, "queued_at"),
    dueAt: numberOf(row, "due_at"),
    claimBy: numberOrNullOf(row, "claim_by"),
    holdUntil: numberOrNullOf(row, "hold_until"),
    endBy: numberOrNullOf(row, "end_by"),
    totalBy: numberOrNullOf(row, "total_by"),
  }),
};

/** For walks through many tasks. */
export interface TaskPlace {
  readonly id: string;
  readonly node: number;
  readonly state: string;
  /** The name of its lane. */
  readonly lane: string | null;
}

export const taskPlaceTable: TableSpec<TaskPlace> = {
  name: "task",
  key: ["id"],
  columns: [
    ["id", ({ id }) => id],
    ["node", ({ node }) => node],
    ["state", ({ state }) => state],
    ["lane", ({ lane }) => lane],
  ],
  of: (row) => ({ id: row.id as string, node: row.node as number, state: row.state as string, lane: row.lane as string | null }),
};

/** For scans that need only the id of a task. */
export const taskIdTable: TableSpec<string> = {
  name: "task",
  key: ["id"],
  columns: [["id", (id) => id]],
  of: (row) => row.id as string,
};

export interface TaskRowsHooks {
  committed(task: TaskRow): void;
  seen(task: TaskRow, isOperation: boolean): TaskRow;
}

export function taskRows(store: RowStore, commit: GroupCommit, hooks: TaskRowsHooks): Rows<TaskRow> {
  const rows = store.table(taskTable);
  return new Rows<TaskRow>(commit, {
    load: (tx, id) => rows.get(tx, id),
    save(task, isNew, before) {
      checkNames(task, before);
      if (isNew) return isNew === "first" ? rows.insert([task]) : rows.write(task);
      rows.write(task, changedColumns(task, before));
      if (task.streamed && before?.streamed !== true) rows.write(task, streaming);
    },
    remove: (id) => rows.remove([id]),
    chars: taskChars,
    // The holder of a task, and the end of its hold, may be newer in memory than on disk.
    keep: (task) => (task.endedAt !== null ? "no" : task.state === "queued" ? "while-room" : "always"),
    keptMax: queuedKeptMax,
    texts: {
      areWith: ({ input }) => (input as string | undefined) !== undefined,
      without: ({ input: _input, output: _output, ...head }) => head as TaskRow,
      from: ({ input, output }, task) => Object.assign(copyOf(task), { input, output }),
    },
    ...hooks,
  });
}

function changedColumns(task: TaskRow, before: TaskRow | undefined): readonly Column<TaskRow>[] {
  if (before === undefined || before.endedAt !== null) return anything;
  if (task.endedAt !== null) return sameQueueing(before, task) ? (endsPlainly(before, task) ? atPlainEnd : atEnd) : anything;
  return sameQueueing(before, task) && sameClosing(before, task) ? holding : goingOn;
}

/** Not for an offer: after a restart, its times in memory are newer than on disk. */
function endsPlainly(before: TaskRow, task: TaskRow): boolean {
  return before.state === "held" && sameHolding(before, task);
}

export function taskChars({ input, output }: TaskRow): number {
  return input.length + (output?.length ?? 0);
}

/**
 * Compares field by field. The functions of the columns would take 1 us, and the statement that this may shorten takes 6 us. A test
 * compares the lists of fields and columns.
 */
export function sameQueueing(one: TaskRow, other: TaskRow): boolean {
  return (
    one.sequence === other.sequence &&
    one.attempt === other.attempt &&
    one.firstAttempt === other.firstAttempt &&
    one.ordinal === other.ordinal &&
    one.failures === other.failures &&
    one.lost === other.lost &&
    one.deferrals === other.deferrals &&
    one.attemptAt === other.attemptAt &&
    one.queuedAt === other.queuedAt &&
    one.dueAt === other.dueAt
  );
}

export function sameHolding(one: TaskRow, other: TaskRow): boolean {
  return (
    one.grant === other.grant &&
    one.holder === other.holder &&
    one.termMs === other.termMs &&
    one.startedAt === other.startedAt &&
    one.claimedAt === other.claimedAt &&
    one.claimBy === other.claimBy &&
    one.endBy === other.endBy &&
    one.error === other.error &&
    one.fault === other.fault &&
    one.overdue === other.overdue
  );
}

export function sameClosing(one: TaskRow, other: TaskRow): boolean {
  return (
    one.output === other.output &&
    one.error === other.error &&
    one.fault === other.fault &&
    one.overdue === other.overdue &&
    one.closedGrant === other.closedGrant &&
    one.closedBy === other.closedBy &&
    one.closedReceipt === other.closedReceipt
  );
}

/** The row of the last commit was checked: only the names of holder and lane can have changed since. */
function checkNames(task: TaskRow, before: TaskRow | undefined): void {
  if (task.holder !== null && task.holder !== before?.holder) checkName(task.holder, "holder", "a task");
  if (task.lane !== null && task.lane !== before?.lane) checkName(task.lane.name, "lane", "a task");
  if (before !== undefined) return;
  checkName(task.id, "id", "a task");
  checkName(task.step, "step", "a task");
}

const noLimits: readonly LimitKey[] = [];
const noLabels: readonly string[] = [];

function labelsText(lane: Lane | null): string | null {
  return lane === null || lane.labels.length === 0 ? null : JSON.stringify(lane.labels);
}

function laneOf(row: Row): Lane | null {
  if (row.lane === null) return null;
  return { name: row.lane as string, labels: row.labels === null ? noLabels : (JSON.parse(row.labels as string) as string[]) };
}

export function taskOf(row: Row): TaskRow {
  const { fault, overdue } = faultOfRow({
    fault: row.fault as string | null,
    error: row.error as string | null,
    grants: row.grant_count as number,
  });
  return {
    id: row.id as string,
    runId: row.run_id as string | null,
    node: row.node as number,
    step: row.step as string,
    lane: laneOf(row),
    priority: row.priority as number,
    state: row.state as TaskState,
    sequence: row.sequence as number,
    attempt: row.attempt as number,
    firstAttempt: row.first_attempt as number,
    ordinal: row.ordinal as number,
    grant: row.grant_count as number,
    holder: row.holder as string | null,
    termMs: row.term_ms as number,
    input: row.input as string,
    output: row.output as string | null,
    error: row.error as string | null,
    fault,
    overdue,
    failures: row.failures as number,
    lost: row.lost as number,
    deferrals: row.deferrals as number,
    policy: row.policy as string | null,
    limits: row.limits === null ? noLimits : (JSON.parse(row.limits as string) as LimitKey[]),
    holdMs: row.hold_ms as number | null,
    claimMs: row.claim_ms as number | null,
    endMs: row.end_ms as number | null,
    postedAt: row.posted_at as number,
    attemptAt: row.attempt_at as number,
    queuedAt: row.queued_at as number,
    dueAt: row.due_at as number,
    startedAt: row.started_at as number | null,
    claimedAt: row.claimed_at as number | null,
    endedAt: row.ended_at as number | null,
    claimBy: row.claim_by as number | null,
    holdUntil: row.hold_until as number | null,
    endBy: row.end_by as number | null,
    totalBy: row.total_by as number | null,
    closedGrant: row.closed_grant as number,
    closedBy: row.closed_by as Verb | null,
    closedReceipt: row.closed_receipt as string | null,
    streamed: row.streamed === 1,
    signal: row.signal as string | null,
    command: row.command as string | null,
  };
}
