// The row of a task after its end. Pure functions.

import type { Closing } from "./attempts.ts";
import { cell, type Deadline, type EndState, type Fault, type TaskRow } from "./task.ts";
import { copyOf } from "./task-copy.ts";

/** The result of a task. */
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
 * Returns the cancelled task. Without `fault`, it is cancelled together with its run. Its holder is informed by the verdict of its next
 * report. A task that is not open stays unchanged.
 */
export function cancelledTask(task: TaskRow, now: number, fault?: Fault): TaskRow {
  const next = cell(task.state, "cancel");
  if (next === null) return task;
  if (next.to === "cancelling") return { ...task, state: "cancelling", fault: fault ?? null };
  return endedTask(task, "cancelled", { now, by: "cancel", receipt: null }, { output: task.output, error: null, fault });
}

/** Returns a task whose record is void, but whose grants continue to count: a hold of its earlier life stays refused. */
export function forgottenTask(task: TaskRow, now: number): TaskRow {
  if (task.state === "forgotten") return task;
  return { ...task, state: "forgotten", endedAt: now, holdUntil: null, grant: task.grant + (task.grant % 2), streamed: false };
}
