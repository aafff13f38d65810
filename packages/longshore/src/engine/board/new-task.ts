// A task at the beginning of its life.

import type { NewTaskRow } from "./store.ts";
import type { TaskRow } from "./task.ts";

/** A queued task as it is first created. */
export function newTask(
  task: NewTaskRow & { runId?: string; node?: number; ordinal?: number },
  now: number,
  lane: TaskRow["lane"],
): TaskRow {
  return {
    id: task.id,
    runId: task.runId ?? null,
    node: task.node ?? 0,
    step: task.step,
    lane,
    priority: task.priority ?? 0,
    state: "queued",
    sequence: 0,
    attempt: 0,
    firstAttempt: 0,
    ordinal: task.ordinal ?? 0,
    grant: 0,
    holder: null,
    termMs: 0,
    input: task.input,
    output: null,
    error: null,
    fault: null,
    overdue: null,
    failures: 0,
    lost: 0,
    deferrals: 0,
    policy: task.policy,
    limits: task.limits ?? [],
    holdMs: task.holdMs ?? null,
    claimMs: task.claimMs ?? null,
    endMs: task.endMs ?? null,
    postedAt: now,
    attemptAt: now,
    queuedAt: now,
    dueAt: now + (task.delayMs ?? 0),
    startedAt: null,
    claimedAt: null,
    endedAt: null,
    claimBy: task.claimMs === undefined ? null : now + (task.delayMs ?? 0) + task.claimMs,
    holdUntil: null,
    endBy: null,
    totalBy: task.totalMs === undefined ? null : now + task.totalMs,
    closedGrant: 0,
    closedBy: null,
    closedReceipt: null,
    streamed: false,
  };
}
