// Rows of tasks and attempts as the timeline reads them: a run may have 20,000, and the other columns would take most of the time.

import type { Lane, TaskRow, TaskState, Verb } from "../board/task.ts";
import type { Row, TableSpec } from "../rows.ts";
import type { AttemptTimes, RecordTimes } from "../run/record-times.ts";
import { endedBy } from "./attempt.ts";

const recordColumns = [
  ...["id", "run_id", "node", "step", "lane", "state", "signal", "command", "ordinal", "first_attempt", "attempt", "deferrals", "holder"],
  ...["queued_at", "due_at", "started_at", "claimed_at", "ended_at", "closed_by"],
];
const attemptColumns = [
  "grant_count",
  "attempt",
  "closed_by",
  "holder",
  "queued_at",
  "started_at",
  "ended_at",
  "due_at",
  "claimed_at",
  "state",
];

function columns<R>(names: readonly string[]): TableSpec<R>["columns"] {
  return names.map((name) => [name, () => null] as const);
}

/** Only read here. The labels of lanes are not read. */
export const recordTimesTable: TableSpec<RecordTimes & Pick<TaskRow, "runId">> = {
  name: "task",
  key: ["id"],
  columns: columns(recordColumns),
  of: (row) => ({
    id: row.id as string,
    runId: row.run_id as string | null,
    node: row.node as number,
    step: row.step as string,
    state: row.state as TaskState,
    lane: laneOf(row.lane as string | null),
    signal: row.signal as string | null,
    command: row.command as string | null,
    ordinal: row.ordinal as number,
    firstAttempt: row.first_attempt as number,
    deferrals: row.deferrals as number,
    ...timesOf(row),
  }),
};

/** Only read here. */
export const attemptTimesTable: TableSpec<AttemptTimes> = {
  name: "attempt",
  key: ["task_id", "grant_count", "attempt"],
  columns: columns(attemptColumns),
  of: (row) => ({ grant: row.grant_count as number, ...timesOf(row) }),
};

function timesOf(row: Row): Omit<AttemptTimes, "grant"> {
  return {
    attempt: row.attempt as number,
    holder: row.holder as string | null,
    queuedAt: row.queued_at as number,
    dueAt: row.due_at as number,
    startedAt: row.started_at as number | null,
    claimedAt: row.claimed_at as number | null,
    endedAt: row.ended_at as number | null,
    closedBy: endedBy(row.closed_by as Verb | null, row.state as TaskState | null),
  };
}

function laneOf(name: string | null): Lane | null {
  return name === null ? null : { name, labels: [] };
}
