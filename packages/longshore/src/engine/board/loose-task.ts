// A task without a run, as a caller asks for it.

import type { RetryHint } from "../../core/task.ts";
import { noRetry } from "../run/retry.ts";
import type { NewTaskRow } from "./store.ts";

export interface LooseTask {
  readonly id: string;
  /** The name of the task, which is also its lane. */
  readonly task: string;
  /** JSON text. */
  readonly input: string;
  readonly labels?: readonly string[];
  readonly retry?: RetryHint;
  readonly priority?: number;
  readonly delayMs?: number;
  /** The time limit of one attempt. */
  readonly timeoutMs?: number;
}

export function looseTask({ id, task, input, labels = [], retry, priority, delayMs, timeoutMs }: LooseTask): NewTaskRow {
  return {
    ...{ id, step: task, input, priority, delayMs, endMs: timeoutMs },
    lanes: [{ name: task, labels: [...new Set(labels)].sort() }],
    policy: retry === undefined ? null : JSON.stringify({ ...noRetry, failures: retry.limit, ...backoffOf(retry) }),
  };
}

function backoffOf({ backoff }: RetryHint) {
  return backoff === undefined ? {} : { backoff };
}
