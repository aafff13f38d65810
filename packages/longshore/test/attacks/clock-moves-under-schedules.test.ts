// The wall clock of the server's machine is set ahead or back while schedules run. No tick may be left out, start twice, or wait for the
// wall clock; ticks of a time that has not come must not start.

import { expect, it, onTestFinished } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import type { Tick } from "../../src/engine/schedule/schedule.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type OpenEngine, openEngineWithStore } from "../support/engine.ts";
import { MachineClock } from "../support/machine-clock.ts";

const minuteMs = 60_000;
const dayMs = 86_400_000;

async function started(clock: Clock): Promise<{ engine: OpenEngine; ticks: () => Promise<readonly Tick[]>; runs: () => Promise<number> }> {
  const engine = await openEngineWithStore({ directory: null, clock });
  onTestFinished(() => engine.close());
  const source = JSON.stringify({ name: "w", steps: [{ id: "a", task: "a", input: null }], output: null });
  await engine.runs.define({ name: "w", dialect: "code", source });
  await engine.schedules.put({ name: "s", rules: { workflow: "w", every: "1m", overlap: "allow" }, input: "null" });
  const ticks = async () => [...((await engine.schedules.get("s"))?.history ?? [])].reverse();
  const runs = async () => (await engine.reader.tasks({ limit: 1_000 })).items.length;
  return { engine, ticks, runs };
}

/** Every tick has started once, each a minute after the one before. */
function expectWhole(ticks: readonly Tick[]): void {
  expect(ticks.map(({ outcome }) => outcome)).toEqual(ticks.map(() => "started"));
  const [first] = ticks;
  expect(ticks.map(({ at }) => at)).toEqual(ticks.map((_, index) => (first?.at ?? 0) + index * minuteMs));
}

it.each([
  ["ahead for a while", [40 * dayMs, -40 * dayMs]],
  ["back for a while", [-40 * dayMs, 40 * dayMs]],
  ["ahead, permanently", [40 * dayMs]],
  ["back, permanently", [-40 * dayMs]],
])("a machine whose wall clock is set %s starts a run for each minute, and no others", async (_title, steps) => {
  const clock = new MachineClock();
  const { ticks, runs } = await started(clock);
  await clock.pass(2 * 60);
  expect((await ticks()).length).toBe(2);
  for (const byMs of steps) {
    clock.set(byMs);
    const before = { now: clock.now(), ticks: (await ticks()).length };
    await clock.pass(4 * 60);
    // At most one and a half times as fast, until the clocks agree.
    const passedMs = clock.now() - before.now;
    expect(passedMs).toBeGreaterThanOrEqual(4 * minuteMs);
    expect(passedMs).toBeLessThanOrEqual(6 * minuteMs + 5_000);
    expect((await ticks()).length - before.ticks).toBeGreaterThanOrEqual(4);
    expect((await ticks()).length - before.ticks).toBeLessThanOrEqual(7);
  }
  expectWhole(await ticks());
  expect(await runs()).toBe((await ticks()).length);
  expect((await ticks()).at(-1)?.at).toBeLessThanOrEqual(clock.now());
});

it("a clock that goes back starts no tick a second time, and goes on when the time of the next tick has come", async () => {
  const clock = new TestClock();
  const { ticks, runs } = await started(clock);
  await clock.advance(5 * minuteMs);
  clock.jump(-3 * minuteMs);
  await clock.advance(3 * minuteMs);
  expect((await ticks()).length).toBe(5);
  await clock.advance(2 * minuteMs);
  expectWhole(await ticks());
  expect([(await ticks()).length, await runs()]).toEqual([7, 7]);
});

it("a clock that leaps forward starts the last of the ticks that it passed over, and counts the others", async () => {
  const clock = new TestClock();
  const { ticks, runs } = await started(clock);
  await clock.advance(2 * minuteMs);
  clock.jump(10 * minuteMs);
  await clock.advance(2 * minuteMs);
  const outcomes = (await ticks()).map(({ outcome, count = 1 }) => `${outcome} ${count}`);
  expect(outcomes).toEqual(["started 1", "started 1", "missed 9", "started 1", "started 1", "started 1"]);
  expect(await runs()).toBe(5);
});
