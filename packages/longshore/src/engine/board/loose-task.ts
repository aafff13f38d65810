// A task without a run, as a caller asks for it.

import type { RetryHint } from "../../core/task.ts";
import { noRetry } from "../run/retry.ts";
import type { NewTaskRow } from "./store.ts";

const noLabels: readonly string[] = [];

export interface LooseTask {
  readonly id: string;
  /** The name of the task, which is also its lane. */
  readonly task: string;
  /** JSON text. */
  readonly input: string;
  readonly labels?: readonly string[] | undefined;
  readonly retry?: RetryHint | undefined;
  readonly priority?: number | undefined;
  readonly delayMs?: number | undefined;
  /** The time limit of one attempt. */
  readonly timeoutMs?: number | undefined;
}

export function looseTask({ id, task, input, labels = [], retry, priority, delayMs, timeoutMs }: LooseTask): NewTaskRow {
  return {
    id,
    step: task,
    lanes: [{ name: task, labels: labels.length === 0 ? noLabels : [...new Set(labels)].sort() }],
    input,
    priority,
    delayMs,
    endMs: timeoutMs,
    policy: retry === undefined ? null : JSON.stringify({ ...noRetry, failures: retry.limit, ...backoffOf(retry) }),
  };
}

function backoffOf({ backoff }: RetryHint) {
  return backoff === undefined ? {} : { backoff };
}
