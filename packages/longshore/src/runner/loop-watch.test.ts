import { expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { LoopWatch } from "./loop-watch.ts";

it("reports a blocked event loop once, and again the next time", async () => {
  const clock = new TestClock();
  const blocked: number[] = [];
  const watch = new LoopWatch(clock, (ms) => blocked.push(ms));
  watch.start();
  await clock.advance(5_000);
  expect(blocked).toEqual([]);
  clock.jump(4_000);
  await clock.advance(0);
  expect(blocked).toEqual([3_000]);
  clock.jump(3_000);
  await clock.advance(0);
  expect(blocked).toEqual([3_000]);
  await clock.advance(3_000);
  clock.jump(6_000);
  await clock.advance(0);
  expect(blocked).toEqual([3_000, 5_000]);
  watch.stop();
  expect(clock.pending).toBe(0);
});

it("notices a task that blocked until its end, before any timer could fire", () => {
  const clock = new TestClock();
  const blocked: number[] = [];
  const watch = new LoopWatch(clock, (ms) => blocked.push(ms));
  watch.start();
  clock.jump(10_000);
  watch.pause();
  expect(blocked).toEqual([9_000]);
});

it("stops its timer when no handler runs", async () => {
  const clock = new TestClock();
  const watch = new LoopWatch(clock, () => {});
  watch.start();
  watch.pause();
  expect(clock.pending).toBe(1);
  await clock.advance(1_000);
  expect(clock.pending).toBe(0);
  watch.start();
  expect(clock.pending).toBe(1);
});
