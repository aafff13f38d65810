// Two events of a task, for metrics and spans: it was handed out, and an attempt is over.

import type { EndState, Fault, TaskRow } from "./task.ts";

/** Called after the commit. Must not throw, and must be short: each task causes two calls. */
export interface WorkListener {
  /** A task was handed out at this time. `task` is as it was while it waited. */
  handedOut(task: TaskRow, at: number): void;
  /** An attempt that a worker had begun is over, or a turn of a durable function. `task` is as it was during the attempt or at its end. */
  attemptOver(task: TaskRow, end: AttemptEnd): void;
}

export interface AttemptEnd {
  readonly state: EndState;
  readonly endedAt: number;
  readonly fault: Fault | null;
  readonly error: string | null;
}

export const unheard: WorkListener = { handedOut: () => {}, attemptOver: () => {} };
