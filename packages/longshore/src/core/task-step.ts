// The options of a step that runs a task: retries, queueing and limits. One type for authors and one for storage, for steps of graphs and
// of durable functions.

import type { Backoff } from "./backoff.ts";
import { type Duration, durationMs } from "./duration.ts";
import { withoutAbsent } from "./without-absent.ts";

/** The options of a step that runs a task, in a graph and in a durable function. */
export interface TaskStepOptions {
  retry?: { limit: number; lost?: number; backoff?: Backoff };
  /** The limit of one attempt. */
  timeout?: Duration;
  /** The limit of all attempts together. */
  totalTimeout?: Duration;
  /** How long the step may wait in the queue until a worker takes it. */
  queueTimeout?: Duration;
  /** Steps with a smaller number run first. Default: 0. */
  priority?: number;
  /** Only workers with all of these labels take the step. */
  labels?: readonly string[];
  limits?: readonly { key: string; held?: number; rate?: { count: number; window: Duration } }[];
}

/** The same options as they are stored: durations are milliseconds. */
export interface TaskStepSettings {
  retry?: { readonly failures: number; readonly lost?: number; readonly backoff?: Backoff };
  timeoutMs?: number;
  totalMs?: number;
  claimMs?: number;
  priority?: number;
  labels?: readonly string[];
  limits?: readonly {
    readonly key: string;
    readonly held?: number;
    readonly rate?: { readonly count: number; readonly windowMs: number };
  }[];
}

/** Converts the options of a step. Throws for an invalid duration; the error names the option and `step`. */
export function taskStepSettings(options: TaskStepOptions, step: string): TaskStepSettings {
  const { retry, timeout, totalTimeout, queueTimeout, priority, labels, limits } = options;
  const ms = (value: Duration | undefined, option: string) =>
    value === undefined ? undefined : durationMs(value, `${option} of step ${step}`);
  return withoutAbsent({
    retry: retry === undefined ? undefined : withoutAbsent({ failures: retry.limit, lost: retry.lost, backoff: retry.backoff }),
    timeoutMs: ms(timeout, "timeout"),
    totalMs: ms(totalTimeout, "totalTimeout"),
    claimMs: ms(queueTimeout, "queueTimeout"),
    priority,
    labels,
    limits: limits?.map(({ key, held, rate }) =>
      withoutAbsent({
        key,
        held,
        rate: rate === undefined ? undefined : { count: rate.count, windowMs: durationMs(rate.window, `limits of step ${step}`) },
      }),
    ),
  });
}
