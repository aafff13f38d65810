// Whether an attempt that closed is followed by another, and when. Policy only: pure, and no part of the board.

import { backoffMs } from "../backoff.ts";
import type { RetryPolicy } from "./plan.ts";

/** How an attempt came to its end without a result. */
export type Closure =
  | { kind: "failed"; error: string; retryable: boolean; delayMs?: number }
  | { kind: "lost" }
  | { kind: "timed-out"; which: "claimBy" | "endBy" | "totalBy" };

export type NextTry =
  | { again: true; dueAt: number; failures: number; lost: number }
  | { again: false; error: string; failures: number; lost: number };

export const noRetry: RetryPolicy = { failures: 0, lost: 1, backoff: { kind: "fixed", delayMs: 0 } };

/** `failures` and `lost` are the counts before this closure; `random` lies in [0, 1). */
export function nextTry(
  policy: RetryPolicy,
  counts: { failures: number; lost: number },
  closure: Closure,
  now: number,
  random: number,
): NextTry {
  if (closure.kind === "lost") {
    const lost = counts.lost + 1;
    if (lost <= policy.lost) return { again: true, dueAt: now, failures: counts.failures, lost };
    return { again: false, error: "lease expired", failures: counts.failures, lost };
  }
  const failures = counts.failures + 1;
  const final = { again: false as const, error: errorOf(closure), failures, lost: counts.lost };
  if (closure.kind === "failed" && !closure.retryable) return final;
  // Out of time altogether, or nobody came to take it: trying again would wait for the same.
  if (closure.kind === "timed-out" && closure.which !== "endBy") return final;
  if (failures > policy.failures) return final;
  const delay = closure.kind === "failed" && closure.delayMs !== undefined ? closure.delayMs : backoffMs(policy.backoff, failures, random);
  return { again: true, dueAt: now + delay, failures, lost: counts.lost };
}

function errorOf(closure: Exclude<Closure, { kind: "lost" }>): string {
  if (closure.kind === "failed") return closure.error;
  if (closure.which === "claimBy") return "timed out: nobody took it in time";
  return closure.which === "endBy" ? "timed out: the attempt took too long" : "timed out: the task took too long";
}
