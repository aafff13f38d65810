import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TestClock } from "../../testing/clock.ts";
import { Deadlines } from "./deadlines.ts";

function setup() {
  const clock = new TestClock(0);
  const fired: [string, number][] = [];
  const deadlines = new Deadlines(clock, (ids) => {
    for (const id of ids) fired.push([id, clock.now()]);
  });
  return { clock, deadlines, fired };
}

describe("deadlines", () => {
  it("fire when the clock reaches them, not before", async () => {
    const { clock, deadlines, fired } = setup();
    deadlines.add("lease", 1_000);
    await clock.advance(999);
    expect(fired).toEqual([]);
    await clock.advance(1);
    expect(fired).toEqual([["lease", 1_000]]);
    await clock.advance(10_000);
    expect(fired).toHaveLength(1);
  });

  it("fire in order of time, each at its own", async () => {
    const { clock, deadlines, fired } = setup();
    for (const [id, at] of [
      ["c", 30],
      ["a", 10],
      ["b", 20],
    ] as const)
      deadlines.add(id, at);
    await clock.advance(100);
    expect(fired).toEqual([
      ["a", 10],
      ["b", 20],
      ["c", 30],
    ]);
  });

  it("that move earlier fire at the earlier time, once", async () => {
    const { clock, deadlines, fired } = setup();
    deadlines.add("lease", 1_000);
    deadlines.add("lease", 400);
    await clock.advance(2_000);
    expect(fired).toEqual([["lease", 400]]);
  });

  it("that move later fire early, as a hint, and again when they are added again", async () => {
    const { clock, deadlines, fired } = setup();
    deadlines.add("lease", 400);
    deadlines.add("lease", 1_000);
    await clock.advance(400);
    expect(fired).toEqual([["lease", 400]]);
    deadlines.add("lease", 1_000);
    await clock.advance(600);
    expect(fired).toEqual([
      ["lease", 400],
      ["lease", 1_000],
    ]);
  });

  it("that were dropped do not fire", async () => {
    const { clock, deadlines, fired } = setup();
    deadlines.add("lease", 400);
    deadlines.add("other", 500);
    deadlines.drop("lease");
    await clock.advance(1_000);
    expect(fired).toEqual([["other", 500]]);
    expect(deadlines.size).toBe(0);
  });

  it("that were dropped and added again fire at their new time", async () => {
    const { clock, deadlines, fired } = setup();
    deadlines.add("lease", 400);
    deadlines.drop("lease");
    deadlines.add("lease", 700);
    await clock.advance(1_000);
    expect(fired).toEqual([["lease", 700]]);
  });

  it("that have passed already fire at once", async () => {
    const { clock, deadlines, fired } = setup();
    await clock.advance(500);
    deadlines.add("lease", 100);
    await clock.advance(0);
    expect(fired).toEqual([["lease", 500]]);
  });

  it("that are due together are passed on in bounded portions, all of them", async () => {
    const clock = new TestClock(0);
    const portions: number[] = [];
    const deadlines = new Deadlines(clock, (ids) => portions.push(ids.length));
    for (let at = 0; at < 1_234; at++) deadlines.add(`t${at}`, 50);
    await clock.advance(50);
    expect(portions).toEqual([500, 500, 234]);
  });

  it("arm one timer for all, and none when closed", async () => {
    const { clock, deadlines, fired } = setup();
    for (let at = 1; at <= 100; at++) deadlines.add(`t${at}`, at * 10);
    expect(clock.pending).toBe(1);
    deadlines.close();
    deadlines.add("late", 5);
    expect(clock.pending).toBe(0);
    await clock.advance(10_000);
    expect(fired).toEqual([]);
  });

  it("of tasks that ended early are removed before they would have fired", () => {
    const { deadlines } = setup();
    for (let at = 0; at < 100_000; at++) {
      deadlines.add(`t${at}`, 60_000 + at);
      if (at >= 10) deadlines.drop(`t${at - 10}`);
    }
    expect(deadlines.size).toBe(10);
    expect(deadlines.carried).toBeLessThan(2_000);
  });

  it("fire for the earliest time set since the last firing or drop, under any sequence", async () => {
    const move = fc.record({ id: fc.constantFrom("a", "b", "c"), at: fc.option(fc.integer({ min: 0, max: 50 })), wait: fc.nat(8) });
    await fc.assert(
      fc.asyncProperty(fc.array(move, { maxLength: 40 }), async (moves) => {
        const clock = new TestClock(0);
        const pending = new Map<string, number>();
        const deadlines = new Deadlines(clock, (ids) => {
          for (const id of ids) {
            expect(pending.get(id)).toBeLessThanOrEqual(clock.now());
            pending.delete(id);
          }
        });
        for (const { id, at, wait } of moves) {
          if (at === null) {
            deadlines.drop(id);
            pending.delete(id);
          } else {
            deadlines.add(id, at);
            pending.set(id, Math.min(pending.get(id) ?? at, at));
          }
          await clock.advance(wait);
          for (const due of pending.values()) expect(due).toBeGreaterThan(clock.now());
        }
      }),
      { numRuns: 50 },
    );
  });
});

it("bounds the entries that are left behind by one deadline that moves earlier again and again", () => {
  const { deadlines } = setup();
  for (let at = 20_000; at > 10_000; at--) deadlines.add("first", at);
  expect(deadlines.size).toBe(1);
  expect(deadlines.carried).toBeLessThan(2_000);
});
