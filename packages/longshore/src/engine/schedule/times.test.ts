import { describe, expect, it } from "vitest";
import { Slices } from "../../core/slices/slices.ts";
import { jitterOf, Times } from "./times.ts";

const times = new Times();
const minuteMs = 60_000;

describe("an interval", () => {
  it("counts from its anchor, in both directions", async () => {
    const when = { kind: "every", everyMs: 5 * minuteMs, anchor: 2 * minuteMs } as const;
    expect(await times.list(when, { after: 0, max: 3 }, new Slices())).toEqual([2 * minuteMs, 7 * minuteMs, 12 * minuteMs]);
    expect(times.next(when, -5 * minuteMs)).toBe(-3 * minuteMs);
  });

  it("comes after a time, never at it", () => {
    const when = { kind: "every", everyMs: 1_000, anchor: 0 } as const;
    expect([times.next(when, 999), times.next(when, 1_000)]).toEqual([1_000, 2_000]);
  });
});

describe("a single time", () => {
  it("comes once", async () => {
    expect(await times.list({ kind: "at", at: 5 }, { after: 0, max: 10 }, new Slices())).toEqual([5]);
    expect(times.next({ kind: "at", at: 5 }, 5)).toBeNull();
  });
});

describe("the last time up to another", () => {
  it("is found among millions", () => {
    expect(times.last({ kind: "every", everyMs: 1_000, anchor: 7 }, 7, 10_000_000_500)).toBe(9_999_999_007 + 1_000);
  });

  it("is the first when there is no other", () => {
    expect(times.last({ kind: "at", at: 5 }, 5, 100)).toBe(5);
    expect(times.last({ kind: "every", everyMs: 1_000, anchor: 0 }, 1_000, 1_999)).toBe(1_000);
    expect(times.last({ kind: "every", everyMs: 1_000, anchor: 0 }, 1_000, 1_000)).toBe(1_000);
  });
});

describe("jitter", () => {
  it("is the same each time for a schedule and a tick, and differs between them", () => {
    const all = Array.from({ length: 100 }, (_, tick) => jitterOf("nightly", tick, minuteMs));
    expect(all).toEqual(Array.from({ length: 100 }, (_, tick) => jitterOf("nightly", tick, minuteMs)));
    expect(new Set(all).size).toBeGreaterThan(90);
    expect(jitterOf("weekly", 1, minuteMs)).not.toBe(jitterOf("nightly", 1, minuteMs));
    expect(Math.max(...all)).toBeLessThan(minuteMs);
  });

  it("is nothing without a width", () => {
    expect(jitterOf("nightly", 1, 0)).toBe(0);
  });
});
