// Converts a task definition to the engine's policies.

import type { Backoff } from "../../../core/backoff.ts";
import type { LimitKey } from "../../../engine/board/limits.ts";
import type { Lane } from "../../../engine/board/task.ts";
import type { Placement, RetryPolicy, Timeouts } from "../../../engine/run/plan.ts";
import type { TaskDef, WorkflowTask } from "./model.ts";

/** Maximum number of retries. More would be an endless loop. */
const retriesMax = 1_000_000;

/** `retryCount` of the workflow's task takes precedence over that of the definition; without a definition there is no retry. */
export function retriesOf(task: Pick<WorkflowTask, "retryCount">, definition: TaskDef | null): number {
  return Math.min(task.retryCount ?? definition?.retryCount ?? 0, retriesMax);
}

/** FIXED: d. LINEAR: d times the scale times the number of the retry. EXPONENTIAL: d, 2d, 4d. Each is capped before the jitter is added. */
export function backoffOf(definition: TaskDef): Backoff {
  const maxMs = definition.maxRetryDelaySeconds > 0 ? definition.maxRetryDelaySeconds * 1_000 : Number.POSITIVE_INFINITY;
  const delayMs = Math.max(definition.retryDelaySeconds, 0) * 1_000;
  const jitter = definition.backoffJitterMs > 0 ? { jitterMs: definition.backoffJitterMs } : {};
  const capped = Number.isFinite(maxMs) ? { maxMs } : {};
  switch (definition.retryLogic) {
    case "FIXED":
      return { kind: "fixed", delayMs: Math.min(delayMs, maxMs), ...jitter };
    case "LINEAR_BACKOFF":
      return { kind: "linear", delayMs: delayMs * definition.backoffScaleFactor, ...capped, ...jitter };
    case "EXPONENTIAL_BACKOFF":
      return { kind: "exponential", delayMs, ...capped, ...jitter };
  }
}

/** A lost lease counts as a failure. A task that no worker polled in time does, too. */
export function retryOf(task: Pick<WorkflowTask, "retryCount">, definition: TaskDef | null): RetryPolicy {
  return {
    failures: retriesOf(task, definition),
    lost: "as-failure",
    backoff: definition === null ? { kind: "fixed", delayMs: 0 } : backoffOf(definition),
    retryUnclaimed: true,
    ...(definition !== null && definition.totalTimeoutSeconds > 0 ? { withinMs: definition.totalTimeoutSeconds * 1_000 } : {}),
    ...(definition?.timeoutPolicy === "TIME_OUT_WF" ? { timeoutEndsRun: true } : {}),
  };
}

/** Which deadlines end a task. ALERT_ONLY ends nothing. */
export function timeoutsOf(definition: TaskDef): Timeouts {
  if (definition.timeoutPolicy === "ALERT_ONLY") return {};
  const { pollTimeoutSeconds, timeoutSeconds, totalTimeoutSeconds } = definition;
  return {
    ...(pollTimeoutSeconds ? { claimMs: pollTimeoutSeconds * 1_000 } : {}),
    ...(timeoutSeconds > 0 ? { endMs: timeoutSeconds * 1_000 } : {}),
    ...(totalTimeoutSeconds > 0 ? { totalMs: totalTimeoutSeconds * 1_000 } : {}),
  };
}

/** How a worker's task is placed. Its lease lasts `responseTimeoutSeconds` without a heartbeat, with any timeout policy. */
export function placementOf(
  task: Pick<WorkflowTask, "retryCount" | "startDelay">,
  definition: TaskDef | null,
  lanes: readonly Lane[],
): Omit<Placement, "timeouts"> {
  return {
    lanes,
    priority: 0,
    retry: retryOf(task, definition),
    limits: definition === null ? [] : limitsOf(definition),
    ...(task.startDelay > 0 ? { delayMs: task.startDelay * 1_000 } : {}),
    holdMs: (definition?.responseTimeoutSeconds ?? 0) * 1_000,
  };
}

/** Limits count by the name of the definition, over all runs. */
export function limitsOf(definition: TaskDef): LimitKey[] {
  const limit = definition.concurrentExecLimit ?? 0;
  const held = limit > 0 ? { held: limit } : {};
  const windowMs = definition.rateLimitFrequencyInSeconds * 1_000;
  const count = definition.rateLimitPerFrequency;
  const rate = count > 0 && windowMs > 0 ? { rate: { count, windowMs } } : {};
  return "held" in held || "rate" in rate ? [{ key: `conductor:${definition.name}`, ...held, ...rate }] : [];
}
