// A run or a task after a change, as readers of events receive it.

import { cutMiddle } from "../../core/text.ts";
import type { TaskRowHead } from "../board/task.ts";
import { type ShownState, shownState } from "../board/wait-reason.ts";
import type { RunHead, RunState } from "./run.ts";

export interface RunChange {
  readonly kind: "run";
  readonly id: string;
  readonly workflow: string;
  readonly state: RunState;
  readonly left: number;
  readonly failed: number;
  readonly error: string | null;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

export interface TaskChange {
  readonly kind: "task";
  readonly id: string;
  readonly runId: string | null;
  /** Null for a task without a run. */
  readonly workflow: string | null;
  readonly step: string;
  readonly state: ShownState;
  /** From 1. */
  readonly attempt: number;
  readonly holder: string | null;
  readonly error: string | null;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

export type Change = RunChange | TaskChange;

/**
 * Maximum length of an error in a change; the row of the run or task has the whole error. A worker may report an error of megabytes, and
 * each change is sent to each reader.
 */
const errorCharsMax = 2_000;

function shortened(error: string | null): string | null {
  if (error === null || error.length <= errorCharsMax) return error;
  // A copy: a substring keeps the whole text in memory.
  return Buffer.from(cutMiddle(error, errorCharsMax)).toString();
}

export function runChange(
  run: Pick<RunHead, "id" | "workflow" | "state" | "left" | "failed" | "createdAt" | "endedAt"> & { readonly error: string | null },
): RunChange {
  const { id, workflow, state, left, failed, createdAt, endedAt } = run;
  return { kind: "run", id, workflow, state, left, failed, error: shortened(run.error), createdAt, endedAt };
}

/** `workflow` is that of the task's run. */
export function taskChange(task: TaskRowHead, workflow: string | null, now: number): TaskChange {
  const { id, runId, step, holder, startedAt, endedAt } = task;
  const state = shownState(task, now);
  const attempt = task.attempt + 1;
  return { kind: "task", id, runId, workflow, step, state, attempt, holder, error: shortened(task.error), startedAt, endedAt };
}
