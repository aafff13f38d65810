// Copies of a task for a change, field by field. This code runs for every task.
//
// Objects that were made with `...` in different places have different hidden classes. Code that reads them becomes slow. A copy made here
// has the same class as a task that is new or was read from the store.

import type { TaskRow } from "./task.ts";

export type TaskCopy = { -readonly [Field in keyof TaskRow]: TaskRow[Field] };

/** Keep the fields in the order of `newTask` and of rows read from the store: only then do all tasks have one class. */
export function copyOf(task: TaskRow): TaskCopy {
  return {
    id: task.id,
    runId: task.runId,
    node: task.node,
    step: task.step,
    lane: task.lane,
    priority: task.priority,
    state: task.state,
    sequence: task.sequence,
    attempt: task.attempt,
    firstAttempt: task.firstAttempt,
    ordinal: task.ordinal,
    grant: task.grant,
    holder: task.holder,
    termMs: task.termMs,
    input: task.input,
    output: task.output,
    error: task.error,
    fault: task.fault,
    overdue: task.overdue,
    failures: task.failures,
    lost: task.lost,
    deferrals: task.deferrals,
    policy: task.policy,
    limits: task.limits,
    holdMs: task.holdMs,
    claimMs: task.claimMs,
    endMs: task.endMs,
    postedAt: task.postedAt,
    attemptAt: task.attemptAt,
    queuedAt: task.queuedAt,
    dueAt: task.dueAt,
    startedAt: task.startedAt,
    claimedAt: task.claimedAt,
    endedAt: task.endedAt,
    claimBy: task.claimBy,
    holdUntil: task.holdUntil,
    endBy: task.endBy,
    totalBy: task.totalBy,
    closedGrant: task.closedGrant,
    closedBy: task.closedBy,
    closedReceipt: task.closedReceipt,
    streamed: task.streamed,
    signal: task.signal,
    command: task.command,
  };
}
