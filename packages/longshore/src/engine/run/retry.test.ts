import { describe, expect, it } from "vitest";
import type { RetryPolicy } from "./plan.ts";
import { type Closure, faultOf, nextTry, noRetry } from "./retry.ts";

const policy: RetryPolicy = { failures: 2, lost: 1, backoff: { kind: "linear", delayMs: 100 } };
const failed: Closure = { kind: "failed", error: "boom", retryable: true };
const after = (closure: Closure, counts = { failures: 0, lost: 0 }, by = policy) => nextTry(by, counts, closure, 1_000, 0.5);

describe("retry", () => {
  it("tries a failed attempt again after its backoff, as often as its budget allows", () => {
    expect(after(failed)).toEqual({ again: true, dueAt: 1_100, failures: 1, lost: 0 });
    expect(after(failed, { failures: 1, lost: 0 })).toEqual({ again: true, dueAt: 1_200, failures: 2, lost: 0 });
    expect(after(failed, { failures: 2, lost: 0 })).toEqual({ again: false, error: "boom", failures: 3, lost: 0 });
  });

  it("tries a lost hold again at once, by a budget of its own", () => {
    expect(after({ kind: "lost" })).toEqual({ again: true, dueAt: 1_000, failures: 0, lost: 1 });
    expect(after({ kind: "lost" }, { failures: 2, lost: 0 })).toMatchObject({ again: true, failures: 2, lost: 1 });
    expect(after({ kind: "lost" }, { failures: 0, lost: 1 })).toEqual({ again: false, error: "lease expired", failures: 0, lost: 2 });
    expect(after(failed, { failures: 0, lost: 7 })).toMatchObject({ again: true });
  });

  it("never tries again a failure that is final", () => {
    expect(after({ ...failed, retryable: false })).toEqual({ again: false, error: "boom", failures: 1, lost: 0 });
  });

  it("waits as long as the report requested, instead of its backoff", () => {
    expect(after({ ...failed, delayMs: 5 })).toMatchObject({ again: true, dueAt: 1_005 });
    expect(after({ ...failed, delayMs: 0 })).toMatchObject({ again: true, dueAt: 1_000 });
  });

  it("takes a failure that was not the task's own from the budget of lost holds", () => {
    const unreachable: Closure = { ...failed, spends: "lost" };
    expect(after(unreachable, { failures: 2, lost: 0 })).toEqual({ again: true, dueAt: 1_000, failures: 2, lost: 1 });
    expect(after(unreachable, { failures: 0, lost: 1 })).toEqual({ again: false, error: "boom", failures: 0, lost: 2 });
    expect(after({ ...unreachable, retryable: false })).toMatchObject({ again: false, lost: 1 });
    expect(after({ ...unreachable, delayMs: 7 })).toMatchObject({ again: true, dueAt: 1_007 });
    expect(after(unreachable, { failures: 2, lost: 0 }, { ...policy, lost: "as-failure" })).toMatchObject({ again: false, failures: 3 });
    expect([faultOf(unreachable), faultOf({ ...unreachable, retryable: false })]).toEqual(["lost", "final"]);
  });

  it("waits after a lost hold as long as its own backoff requires", () => {
    const patient: RetryPolicy = { ...policy, lost: 3, lostBackoff: { kind: "fibonacci", delayMs: 10 } };
    const due = (lost: number) => after({ kind: "lost" }, { failures: 0, lost }, patient);
    expect([due(0), due(1), due(2)].map((next) => "dueAt" in next && next.dueAt)).toEqual([1_010, 1_010, 1_020]);
    expect(due(3)).toMatchObject({ again: false });
  });

  it("takes timeouts from the budget of lost holds where the policy requires it", () => {
    const forgiving: RetryPolicy = { ...policy, timeoutSpends: "lost", retryUnclaimed: true };
    for (const which of ["claimBy", "endBy"] as const) {
      expect(after({ kind: "timed-out", which }, { failures: 2, lost: 0 }, forgiving)).toMatchObject({ again: true, failures: 2, lost: 1 });
      expect(after({ kind: "timed-out", which }, { failures: 0, lost: 1 }, forgiving)).toMatchObject({ again: false });
    }
    expect(after({ kind: "timed-out", which: "totalBy" }, { failures: 0, lost: 0 }, forgiving)).toMatchObject({ again: false });
  });

  it("begins no further attempt after its whole time, also when a budget is left", () => {
    const counts = { failures: 0, lost: 0, postedAt: 0 };
    for (const closure of [failed, { kind: "lost" }] satisfies Closure[]) {
      expect(nextTry({ ...policy, withinMs: 1_000 }, counts, closure, 1_000, 0.5)).toMatchObject({ again: false });
      expect(nextTry({ ...policy, withinMs: 1_001 }, counts, closure, 1_000, 0.5)).toMatchObject({ again: true });
    }
  });

  it("counts an attempt that took too long as a failure", () => {
    expect(after({ kind: "timed-out", which: "endBy" })).toMatchObject({ again: true, dueAt: 1_100, failures: 1 });
    expect(after({ kind: "timed-out", which: "endBy" }, { failures: 2, lost: 0 })).toMatchObject({ again: false });
  });

  it("ends a task that no worker took, or whose whole time has passed", () => {
    for (const which of ["claimBy", "totalBy"] as const) {
      const next = after({ kind: "timed-out", which });
      expect(next).toMatchObject({ again: false, failures: 1 });
      expect((next as { error: string }).error).toMatch(/^timed out: /);
    }
  });

  it("forgives one lost hold and no failure by default", () => {
    expect(after(failed, { failures: 0, lost: 0 }, noRetry)).toMatchObject({ again: false });
    expect(after({ kind: "lost" }, { failures: 0, lost: 0 }, noRetry)).toMatchObject({ again: true });
    expect(after({ kind: "lost" }, { failures: 0, lost: 1 }, noRetry)).toMatchObject({ again: false });
  });
});
