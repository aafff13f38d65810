// The attempts of a task for display: earlier ones have rows of their own, the current one is in the row of the task.

import type { TaskRow, TaskState, Verb } from "../board/task.ts";
import type { Row, TableSpec } from "../rows.ts";
import type { AttemptView } from "../run/reader.ts";
import { faultOfRow } from "./fault.ts";

const name = "attempt";
const key = ["task_id", "grant_count", "attempt"];
const texts = ["input", "output"];
const heads = [
  ...["grant_count", "attempt", "closed_by", "holder", "error", "fault", "queued_at", "started_at", "ended_at", "ordinal", "deferrals"],
  ...["attempt_at", "due_at", "claimed_at", "state"],
];

function columns(names: readonly string[]): TableSpec<AttemptView>["columns"] {
  return names.map((each) => [each, () => null] as const);
}

/** Only read here: attempts.ts writes them. */
export const attemptViewTable: TableSpec<AttemptView> = { name, key, columns: columns([...heads, ...texts]), of: attemptOf };

/** Without the texts. */
export const attemptHeadTable: TableSpec<AttemptView> = { name, key, columns: columns(heads), of: attemptOf };

/** Newest last. */
export const attemptOrder: readonly string[] = key;

function attemptOf(row: Row): AttemptView {
  return {
    attempt: row.attempt as number,
    grant: row.grant_count as number,
    holder: row.holder as string | null,
    error: row.error as string | null,
    queuedAt: row.queued_at as number,
    startedAt: row.started_at as number | null,
    endedAt: row.ended_at as number,
    closedBy: endedBy(row.closed_by as Verb, row.state as TaskState | null),
    ...faultOfRow({ fault: row.fault as string | null, error: row.error as string | null, grants: row.grant_count as number }),
    ordinal: row.ordinal as number,
    deferrals: row.deferrals as number,
    attemptAt: row.attempt_at as number,
    dueAt: row.due_at as number,
    claimedAt: row.claimed_at as number | null,
    input: (row.input ?? null) as string | null,
    output: (row.output ?? null) as string | null,
  };
}

/** A report on a cancelled task releases its hold, whatever it says: the attempt has ended by the cancellation. */
export function endedBy(verb: Verb | null, state: TaskState | null): Verb | null {
  return state === "cancelled" ? "cancel" : verb;
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
    closedBy: ended ? endedBy(task.closedBy, task.state) : null,
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
