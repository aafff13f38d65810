// Decides whether another attempt follows a closed one, and when. Pure policy. board/task-life.ts calls it for a task without a run,
// decide.ts for a step of a run, and driver.ts for a durable function and its steps.

import { backoffMs } from "../../core/backoff.ts";
import type { Deadline, Fault, Lane } from "../board/task.ts";
import type { RetryPolicy } from "./plan.ts";

/** How an attempt ended without a result. A failure with `spends` counts against the budget of lost holds: it was not the task's fault. */
export type Closure =
  | { kind: "failed"; error: string; retryable: boolean; delayMs?: number; spends?: "lost" }
  /** `error`: the reason, for a child run that took too long. Default: the lease of a worker has expired. */
  | { kind: "lost"; error?: string }
  | { kind: "timed-out"; which: "claimBy" | "endBy" | "totalBy" };

/**
 * `ordinal` is the place of the new attempt, or of the end, among the run's records; `input` replaces the task's input when it is evaluated
 * for each attempt; `lane` is the lane of the new attempt when it differs.
 */
export type NextTry =
  | { again: true; dueAt: number; failures: number; lost: number; ordinal?: number; input?: string; wakeAt?: number; lane?: Lane }
  | { again: false; error: string; failures: number; lost: number; ordinal?: number };

/** For a step that no worker holds. A child run that took too long is not started again, because it would take as long again. */
export const tryOnce: RetryPolicy = { failures: 0, lost: 0, backoff: { kind: "fixed", delayMs: 0 } };

/** For a task without a policy: the crash of one worker is tolerated. */
export const noRetry: RetryPolicy = { failures: 0, lost: 1, backoff: { kind: "fixed", delayMs: 0 } };

/** `failures` and `lost` are the counts before this closure; `random` is in [0, 1). */
export function nextTry(
  policy: RetryPolicy,
  counts: { failures: number; lost: number; postedAt?: number },
  closure: Closure,
  now: number,
  random: number,
): NextTry {
  const spendsLost = budgetOf(policy, closure) === "lost" && policy.lost !== "as-failure";
  const failures = counts.failures + (spendsLost ? 0 : 1);
  const lost = counts.lost + (spendsLost ? 1 : 0);
  const spent = spendsLost ? lost > (policy.lost as number) : failures > policy.failures;
  const final = { again: false as const, error: errorOf(closure), failures, lost };
  if (spent || isFinal(policy, closure)) return final;
  if (policy.withinMs !== undefined && counts.postedAt !== undefined && now - counts.postedAt >= policy.withinMs) return final;
  const requestedMs = closure.kind === "failed" ? closure.delayMs : undefined;
  const delay = requestedMs ?? (spendsLost ? lostDelay(policy, lost, random) : backoffMs(policy.backoff, failures, random));
  return { again: true, dueAt: now + delay, failures, lost };
}

function budgetOf(policy: RetryPolicy, closure: Closure): "failures" | "lost" {
  if (closure.kind === "lost") return "lost";
  return (closure.kind === "failed" ? closure.spends : policy.timeoutSpends) ?? "failures";
}

/** True when the failure is final, the total time has passed, or no worker took the task: a retry would end the same way. */
function isFinal(policy: RetryPolicy, closure: Closure): boolean {
  if (closure.kind === "failed") return !closure.retryable;
  if (closure.kind === "lost") return false;
  return closure.which === "totalBy" || (closure.which === "claimBy" && !policy.retryUnclaimed);
}

function lostDelay({ lostBackoff }: RetryPolicy, lost: number, random: number): number {
  return lostBackoff === undefined ? 0 : backoffMs(lostBackoff, lost, random);
}

/** The fault that a record stores. */
export function faultOf(closure: Closure): Fault {
  if (closure.kind !== "failed") return closure.kind;
  return closure.retryable ? (closure.spends ?? "failed") : "final";
}

/** The deadline that passed; null when there was none. */
export function overdueOf(closure: Closure): Deadline | null {
  if (closure.kind === "failed") return null;
  return closure.kind === "lost" ? "holdUntil" : closure.which;
}

/** The text that people read. */
export function errorOf(closure: Closure): string {
  if (closure.kind === "failed") return closure.error;
  if (closure.kind === "lost") return closure.error ?? "lease expired";
  if (closure.which === "claimBy") return "timed out: no worker took it in time";
  return closure.which === "endBy" ? "timed out: the attempt took too long" : "timed out: the task took too long";
}
