import { describe, expect, it } from "vitest";
import { pause } from "../core/clock.ts";
import { TestClock } from "./clock.ts";

describe("the test clock", () => {
  it("fires timers in order of their time, and timers of the same time in the order in which they were set", async () => {
    const clock = new TestClock(1_000);
    const fired: string[] = [];
    const note = (name: string) => () => fired.push(`${name}@${clock.now()}`);
    clock.at(1_300, note("c"));
    clock.at(1_100, note("a"));
    clock.at(1_100, note("b"));
    const cancel = clock.at(1_200, note("never"));
    cancel();
    await clock.advance(250);
    expect(fired).toEqual(["a@1100", "b@1100"]);
    expect(clock.now()).toBe(1_250);
    await clock.advance(50);
    expect(fired).toEqual(["a@1100", "b@1100", "c@1300"]);
  });

  it("lets promises settle between timers, so that chains of waits pass within one advance", async () => {
    const clock = new TestClock();
    const started = clock.now();
    const passed: number[] = [];
    const chain = (async () => {
      for (let step = 0; step < 3; step++) {
        await pause(clock, 100);
        passed.push(clock.now() - started);
      }
    })();
    await clock.advance(300);
    await chain;
    expect(passed).toEqual([100, 200, 300]);
  });

  it("moves from timer to timer until a promise settles, and returns its result or its error", async () => {
    const clock = new TestClock(0);
    const slow = pause(clock, 1_000).then(() => pause(clock, 86_400_000));
    expect(await clock.until(slow.then(() => "done"))).toBe("done");
    expect(clock.now()).toBe(86_401_000);
    await expect(clock.until(Promise.reject(new Error("no")))).rejects.toThrow("no");
    expect(clock.now()).toBe(86_401_000);
  });

  it("can let time pass without firing timers, and fires overdue timers later", async () => {
    const clock = new TestClock(0);
    const fired: number[] = [];
    clock.at(10, () => fired.push(clock.now()));
    clock.jump(500);
    expect(fired).toEqual([]);
    await clock.advance(0);
    expect(fired).toEqual([500]);
  });

  it("reports when a timer has been set", async () => {
    const clock = new TestClock();
    let armed = false;
    const waiting = clock.armed(100).then(() => {
      armed = true;
    });
    clock.at(clock.now() + 200, () => {});
    await clock.advance(0);
    expect(armed).toBe(false);
    clock.at(clock.now() + 100, () => {});
    await waiting;
    expect(clock.pending).toBe(2);
  });
});
