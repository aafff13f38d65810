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

describe("cron expressions with seconds", () => {
  const zones = [
    { cron: "*/20 * * * * *", timezone: "UTC" },
    { cron: "5 0 3 * * *", timezone: "Europe/Berlin" },
  ];
  // 2026-01-01T01:59:50Z.
  const begin = Date.UTC(2026, 0, 1, 1, 59, 50);

  it("come together in their order, from the begin of their range to its end", async () => {
    const own = new Times();
    await own.load();
    const when = { kind: "crons", crons: zones, from: begin, until: begin + 50_000 } as const;
    const found = await own.list(when, { after: 0, max: 100 }, new Slices());
    expect(found.map((at) => at - begin)).toEqual([10_000, 15_000, 30_000, 50_000]);
    expect(own.last(when, found[0] as number, begin + 49_999)).toBe(begin + 30_000);
  });

  it("have a last time before another time, found to the second among many", async () => {
    const own = new Times();
    await own.load();
    const when = { kind: "crons", crons: zones, from: null, until: null } as const;
    expect(own.last(when, begin + 10_000, begin + 86_400_000)).toBe(begin + 86_400_000 - 10_000);
  });

  it("fit only days that fit both the day of the month and the weekday", async () => {
    const own = new Times();
    await own.load();
    const when = { kind: "crons", crons: [{ cron: "0 0 0 13 * FRI", timezone: "UTC" }], from: null, until: null } as const;
    expect(own.next(when, begin)).toBe(Date.UTC(2026, 1, 13));
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
