// Whether an attempt that closed is followed by another, and when. Policy only: pure, and no part of the board.

import { backoffMs } from "../backoff.ts";
import type { Fault } from "../board/task.ts";
import type { RetryPolicy } from "./plan.ts";

/** How an attempt came to its end without a result. */
export type Closure =
  | { kind: "failed"; error: string; retryable: boolean; delayMs?: number }
  | { kind: "lost" }
  | { kind: "timed-out"; which: "claimBy" | "endBy" | "totalBy" };

/** `ordinal` is the new attempt's place among the run's records; `input` replaces the task's where it is worked out for each attempt. */
export type NextTry =
  | { again: true; dueAt: number; failures: number; lost: number; ordinal?: number; input?: string; wakeAt?: number }
  | { again: false; error: string; failures: number; lost: number };

export const noRetry: RetryPolicy = { failures: 0, lost: 1, backoff: { kind: "fixed", delayMs: 0 } };

/** `failures` and `lost` are the counts before this closure; `random` lies in [0, 1). */
export function nextTry(
  policy: RetryPolicy,
  counts: { failures: number; lost: number; postedAt?: number },
  closure: Closure,
  now: number,
  random: number,
): NextTry {
  if (closure.kind === "lost" && policy.lost !== "as-failure") {
    const lost = counts.lost + 1;
    if (lost <= policy.lost) return { again: true, dueAt: now, failures: counts.failures, lost };
    return { again: false, error: errorOf(closure), failures: counts.failures, lost };
  }
  const failures = counts.failures + 1;
  const final = { again: false as const, error: errorOf(closure), failures, lost: counts.lost };
  if (closure.kind === "failed" && !closure.retryable) return final;
  // Out of time altogether, or nobody came to take it: trying again would wait for the same.
  if (closure.kind === "timed-out" && closure.which === "totalBy") return final;
  if (closure.kind === "timed-out" && closure.which === "claimBy" && !policy.retryUnclaimed) return final;
  if (failures > policy.failures) return final;
  if (policy.withinMs !== undefined && counts.postedAt !== undefined && now - counts.postedAt >= policy.withinMs) return final;
  const delay = closure.kind === "failed" && closure.delayMs !== undefined ? closure.delayMs : backoffMs(policy.backoff, failures, random);
  return { again: true, dueAt: now + delay, failures, lost: counts.lost };
}

/** What a record keeps of it. */
export function faultOf(closure: Closure): Fault {
  return closure.kind === "failed" ? (closure.retryable ? "failed" : "final") : closure.kind;
}

/** What people are told of it. */
export function errorOf(closure: Closure): string {
  if (closure.kind === "failed") return closure.error;
  if (closure.kind === "lost") return "lease expired";
  if (closure.which === "claimBy") return "timed out: nobody took it in time";
  return closure.which === "endBy" ? "timed out: the attempt took too long" : "timed out: the task took too long";
}
