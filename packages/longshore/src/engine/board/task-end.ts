// A task as it is after its end. Pure.

import type { Closing } from "./attempts.ts";
import { cell, type Deadline, type EndState, type Fault, type TaskRow } from "./task.ts";
import { copyOf } from "./task-copy.ts";

/** What a task ends with. */
export interface Result {
  output: string | null;
  error: string | null;
  fault?: Fault;
  overdue?: Deadline | null;
}

export function endedTask(task: TaskRow, state: EndState, closing: Closing, result: Result): TaskRow {
  const ended = copyOf(task);
  ended.state = state;
  ended.holder = task.holder ?? closing.holder ?? null;
  ended.output = result.output;
  ended.error = result.error;
  ended.fault = result.fault ?? null;
  ended.overdue = result.overdue ?? null;
  ended.endedAt = closing.now;
  ended.holdUntil = null;
  ended.claimBy = null;
  ended.closedGrant = task.grant;
  ended.closedBy = closing.by;
  ended.closedReceipt = closing.receipt;
  return ended;
}

/**
 * A task that is cancelled, together with its run when there is no `fault`. Its holder learns of it by its next report; what is not open stays as
 * it is.
 */
export function cancelledTask(task: TaskRow, now: number, fault?: Fault): TaskRow {
  const next = cell(task.state, "cancel");
  if (next === null) return task;
  if (next.to === "cancelling") return { ...task, state: "cancelling", fault: fault ?? null };
  return endedTask(task, "cancelled", { now, by: "cancel", receipt: null }, { output: task.output, error: null, fault });
}

/** What is recorded about a step is void, but its grants are counted on: a hold of the life that is over proves nothing. */
export function forgottenTask(task: TaskRow, now: number): TaskRow {
  if (task.state === "forgotten") return task;
  return { ...task, state: "forgotten", endedAt: now, holdUntil: null, grant: task.grant + (task.grant % 2), streamed: false };
}
