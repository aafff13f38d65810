// The attempts of a task for display: earlier ones have rows of their own, the current one is in the row of the task.

import type { TaskRow, Verb } from "../../engine/board/task.ts";
import type { AttemptView } from "../../engine/run/reader.ts";
import { faultOfRow } from "../../engine/tables/fault.ts";
import type { SqlRow } from "./driver.ts";

/** Columns without the texts. */
export const attemptHead =
  "grant_count, attempt, closed_by, holder, error, fault, queued_at, started_at, ended_at, ordinal, deferrals, attempt_at, due_at, claimed_at, NULL AS input, NULL AS output";

/** The try before another one. */
export function attemptBefore(columns: string): string {
  return `SELECT ${columns} FROM attempt WHERE task_id = ? AND (grant_count, attempt) < (?, ?) ORDER BY grant_count DESC, attempt DESC LIMIT 1`;
}

export function attemptOf(row: SqlRow): AttemptView {
  return {
    attempt: row.attempt as number,
    grant: row.grant_count as number,
    holder: row.holder as string | null,
    error: row.error as string | null,
    queuedAt: row.queued_at as number,
    startedAt: row.started_at as number | null,
    endedAt: row.ended_at as number,
    closedBy: row.closed_by as Verb,
    ...faultOfRow({ fault: row.fault as string | null, error: row.error as string | null, grants: row.grant_count as number }),
    ordinal: row.ordinal as number,
    deferrals: row.deferrals as number,
    attemptAt: row.attempt_at as number,
    dueAt: row.due_at as number,
    claimedAt: row.claimed_at as number | null,
    input: row.input as string | null,
    output: row.output as string | null,
  };
}

export function currentAttempt(task: TaskRow): AttemptView {
  const ended = task.endedAt !== null;
  return {
    attempt: task.attempt,
    grant: task.grant,
    holder: task.holder,
    error: ended ? task.error : null,
    queuedAt: task.queuedAt,
    startedAt: task.startedAt,
    endedAt: task.endedAt,
    closedBy: ended ? task.closedBy : null,
    fault: task.fault,
    overdue: task.overdue,
    ordinal: task.ordinal,
    deferrals: task.deferrals,
    attemptAt: task.attemptAt,
    dueAt: task.dueAt,
    claimedAt: task.claimedAt,
    input: task.input,
    output: task.output,
  };
}
