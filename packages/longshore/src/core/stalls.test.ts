import { describe, expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { type Moving, Stalls } from "./stalls.ts";

function thing(): Moving & { at: number; ended: number } {
  return {
    at: 0,
    ended: 0,
    progress() {
      return this.at;
    },
    stalled() {
      this.ended++;
    },
  };
}

describe("a watched connection", () => {
  it("is ended once, after the time and at most a quarter more", async () => {
    const clock = new TestClock();
    const stalls = new Stalls(clock, 1_000);
    const still = thing();
    stalls.watch(still);
    await clock.advance(1_000);
    expect(still.ended).toBe(0);
    await clock.advance(250);
    expect([still.ended, stalls.size]).toEqual([1, 0]);
    await clock.advance(10_000);
    expect(still.ended).toBe(1);
  });

  it("stays while it sends anything", async () => {
    const clock = new TestClock();
    const stalls = new Stalls(clock, 1_000);
    const slow = thing();
    stalls.watch(slow);
    for (let step = 0; step < 20; step++) {
      slow.at++;
      await clock.advance(900);
    }
    expect(slow.ended).toBe(0);
    await clock.advance(2_000);
    expect(slow.ended).toBe(1);
  });

  it("is ended when its average rate is below the minimum, and stays when it is not", async () => {
    const clock = new TestClock();
    const stalls = new Stalls(clock, 1_000, 100);
    const slow = thing();
    const steady = thing();
    stalls.watch(slow);
    stalls.watch(steady);
    for (let step = 0; step < 20; step++) {
      slow.at += 20;
      steady.at += 25;
      await clock.advance(250);
    }
    expect([slow.ended, steady.ended]).toEqual([1, 0]);
  });

  it("stays while it waits for the server", async () => {
    const clock = new TestClock();
    const stalls = new Stalls(clock, 1_000);
    const waiting = thing();
    waiting.at = Number.NaN;
    stalls.watch(waiting);
    await clock.advance(10_000);
    expect(waiting.ended).toBe(0);
  });

  it("is left alone when it is no longer watched, and no timer remains", async () => {
    const clock = new TestClock();
    const stalls = new Stalls(clock, 1_000);
    const [one, other] = [thing(), thing()];
    stalls.watch(one);
    stalls.watch(other);
    stalls.unwatch(one);
    await clock.advance(1_250);
    expect([one.ended, other.ended]).toEqual([0, 1]);
    expect(clock.pending).toBe(0);
    stalls.watch(one);
    stalls.stop();
    expect(clock.pending).toBe(0);
  });
});
