// What the checker reads of runs, tasks, attempts and parts: no texts of any length.

import type { TaskState, Verb } from "../board/task.ts";
import type { TableSpec } from "../rows.ts";
import type { AttemptHistory, ChildHistory, RunHistory, TaskHistory } from "../run/history.ts";
import type { RunState } from "../run/run.ts";
import { plainTable } from "./plain-table.ts";

export type RunRecord = Pick<
  RunHistory,
  "id" | "workflow" | "state" | "endedAt" | "startAt" | "turn" | "active" | "retries" | "parentTaskId"
> & {
  readonly definitionId: string;
  readonly backlog: string | null;
  readonly settings: string | null;
  readonly recorded: number;
};

export const runHistoryTable: TableSpec<RunRecord> = plainTable<RunRecord>("run", ["id"], {
  id: "id",
  workflow: "workflow",
  state: "state",
  endedAt: "ended_at",
  startAt: "start_at",
  turn: "turn",
  active: "active_count",
  retries: "retries",
  parentTaskId: "parent_task_id",
  definitionId: "definition_id",
  backlog: "backlog",
  settings: "settings",
  recorded: "recorded_count",
});

export type TaskRecord = Pick<
  TaskHistory,
  "id" | "runId" | "step" | "state" | "onLane" | "firstAttempt" | "grant" | "closedGrant" | "endedAt" | "hasOutput"
> &
  Pick<AttemptHistory, "attempt" | "holder" | "claimedAt" | "closedBy"> & {
    readonly node: number;
    readonly command: string | null;
    readonly place: number;
  };

const taskColumns = [
  ...["id", "run_id", "node", "step", "lane", "state", "attempt", "first_attempt", "grant_count", "holder", "claimed_at", "ended_at"],
  ...["closed_grant", "closed_by", "command", "ordinal"],
];

export const taskHistoryTable: TableSpec<TaskRecord> = {
  name: "task",
  key: ["id"],
  columns: taskColumns.map((column) => [column, () => null] as const),
  sizes: [["output_bytes", ["output"]]],
  of: (row) => ({
    id: row.id as string,
    runId: row.run_id as string | null,
    step: row.step as string,
    state: row.state as TaskState,
    onLane: row.lane !== null,
    firstAttempt: row.first_attempt as number,
    grant: row.grant_count as number,
    closedGrant: row.closed_grant as number,
    endedAt: row.ended_at as number | null,
    // JSON, which is never empty.
    hasOutput: (row.output_bytes as number) > 0,
    node: row.node as number,
    command: row.command as string | null,
    place: row.ordinal as number,
    attempt: row.attempt as number,
    holder: row.holder as string | null,
    claimedAt: row.claimed_at as number | null,
    closedBy: row.closed_by as Verb | null,
  }),
};

export const attemptHistoryTable: TableSpec<AttemptHistory> = plainTable<AttemptHistory>("attempt", ["task_id", "grant_count", "attempt"], {
  attempt: "attempt",
  grant: "grant_count",
  holder: "holder",
  claimedAt: "claimed_at",
  endedAt: "ended_at",
  closedBy: "closed_by",
  state: "state",
});

export const childHistoryTable: TableSpec<ChildHistory> = {
  name: "run",
  key: ["id"],
  columns: ["id", "state", "parent_task_id", "parent_attempt"].map((column) => [column, () => null] as const),
  of: (row) => ({
    taskId: row.parent_task_id as string,
    attempt: row.parent_attempt as number,
    runId: row.id as string,
    state: row.state as RunState,
  }),
};

export interface PartRecord {
  readonly life: number;
  readonly sequence: number;
  readonly grant: number;
}

export const partHistoryTable = plainTable<PartRecord>("part", ["task_id", "life", "sequence"], {
  life: "life",
  sequence: "sequence",
  grant: "grant_count",
});
