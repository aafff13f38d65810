import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Backoff, backoffMs, backoffMsMax } from "./backoff.ts";

const middle = 0.5;

describe("backoff", () => {
  it("waits the same time before every retry when it is fixed", () => {
    expect([1, 2, 3, 10].map((retry) => backoffMs({ kind: "fixed", delayMs: 700 }, retry, middle))).toEqual([700, 700, 700, 700]);
  });

  it("grows by its delay with each retry when it is linear, up to its maximum", () => {
    const policy: Backoff = { kind: "linear", delayMs: 100, maxMs: 350 };
    expect([1, 2, 3, 4, 50].map((retry) => backoffMs(policy, retry, middle))).toEqual([100, 200, 300, 350, 350]);
  });

  it("doubles with each retry when it is exponential, up to its maximum", () => {
    const policy: Backoff = { kind: "exponential", delayMs: 100, maxMs: 1_000 };
    expect([1, 2, 3, 4, 5, 60].map((retry) => backoffMs(policy, retry, middle))).toEqual([100, 200, 400, 800, 1_000, 1_000]);
  });

  it("grows by the factor that it is given", () => {
    expect([1, 2, 3].map((retry) => backoffMs({ kind: "exponential", delayMs: 10, factor: 3 }, retry, middle))).toEqual([10, 30, 90]);
  });

  it("is the sum of the two delays before it when it is fibonacci, up to its maximum", () => {
    const policy: Backoff = { kind: "fibonacci", delayMs: 1_000, maxMs: 10_000 };
    expect([1, 2, 3, 4, 5, 6, 7, 5_000].map((retry) => backoffMs(policy, retry, middle) / 1_000)).toEqual([1, 1, 2, 3, 5, 8, 10, 10]);
    expect(backoffMs({ kind: "fibonacci", delayMs: 1 }, 5_000, middle)).toBe(backoffMsMax);
  });

  it("treats a retry before the first as the first", () => {
    expect(backoffMs({ kind: "exponential", delayMs: 100 }, 0, middle)).toBe(100);
    expect(backoffMs({ kind: "linear", delayMs: 100 }, -3, middle)).toBe(100);
  });

  it("varies by the share that jitter sets, in both directions", () => {
    const policy: Backoff = { kind: "fixed", delayMs: 1_000, jitter: 0.2 };
    expect(backoffMs(policy, 1, 0)).toBe(800);
    expect(backoffMs(policy, 1, middle)).toBe(1_000);
    expect(backoffMs(policy, 1, 0.999_999)).toBe(1_200);
  });

  it("adds a random number of milliseconds up to the given one, also above the maximum", () => {
    const policy: Backoff = { kind: "linear", delayMs: 1_000, maxMs: 1_500, jitterMs: 4 };
    expect([0, 0.2, 0.5, 0.999_999].map((random) => backoffMs(policy, 1, random))).toEqual([1_000, 1_001, 1_002, 1_004]);
    expect(backoffMs(policy, 5, 0.999_999)).toBe(1_504);
  });

  it("stays within its jitter and below a week, and is always a whole number", () => {
    const policy = fc.record({
      kind: fc.constantFrom("fixed" as const, "linear" as const, "exponential" as const, "fibonacci" as const),
      delayMs: fc.nat(2 * backoffMsMax),
      jitter: fc.double({ min: -1, max: 3, noNaN: true }),
    });
    const random = fc.double({ min: 0, max: 0.999_999_999, noNaN: true });
    fc.assert(
      fc.property(policy, fc.integer({ min: 1, max: 5_000 }), random, (made, retry, drawn) => {
        const plain = backoffMs({ ...made, jitter: 0 }, retry, drawn);
        const jitter = Math.min(Math.max(made.jitter, 0), 1);
        const delay = backoffMs(made, retry, drawn);
        expect(Number.isInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(Math.floor(plain * (1 - jitter)));
        expect(delay).toBeLessThanOrEqual(Math.min(Math.ceil(plain * (1 + jitter)), backoffMsMax));
      }),
    );
  });

  it("stays a number when the power has grown to infinity", () => {
    expect(backoffMs({ kind: "exponential", delayMs: 0 }, 5_000, middle)).toBe(0);
    expect(backoffMs({ kind: "exponential", delayMs: 1 }, 5_000, middle)).toBe(backoffMsMax);
  });
});
