import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { clockOf, steadyTime, systemClock } from "./clock.ts";

describe("time", () => {
  function machine() {
    const clocks = { wallMs: 1_000_000, steadyMs: 5_000.25, sleptMs: 70_000 };
    const pass = (ms: number) => {
      clocks.wallMs += ms;
      clocks.steadyMs += ms;
    };
    const sleep = (ms: number) => {
      clocks.wallMs += ms;
      clocks.sleptMs += ms;
    };
    const now = steadyTime({
      wall: () => Math.floor(clocks.wallMs),
      steady: () => clocks.steadyMs,
      // As coarse as the system's clock.
      uptime: () => Math.floor((clocks.steadyMs + clocks.sleptMs) / 10) * 10,
    });
    return { clocks, pass, sleep, now };
  }

  it("is exactly the wall clock's time, for any number of reads", () => {
    const { clocks, pass, now } = machine();
    for (let asked = 0; asked < 10_000; asked++) {
      pass(0.375);
      expect(now()).toBe(Math.floor(clocks.wallMs));
    }
  });

  it("follows small corrections of the wall clock at once", () => {
    const { clocks, now } = machine();
    clocks.wallMs += 4_000;
    expect(now()).toBe(1_004_000);
  });

  it("follows a sleep of the machine at once, and also later sleeps", () => {
    const { sleep, pass, now, clocks } = machine();
    for (let night = 0; night < 3; night++) {
      sleep(8 * 3_600_000);
      pass(20);
      expect(now()).toBe(Math.floor(clocks.wallMs));
      pass(3_600_000);
    }
  });

  it("does not jump when the wall clock is set ahead, and is only slightly ahead when that was a mistake", () => {
    const { clocks, pass, now } = machine();
    const jumpMs = 40 * 86_400_000;
    clocks.wallMs += jumpMs;
    const before = now();
    expect(before).toBe(1_000_000);
    for (let second = 0; second < 75; second++) {
      pass(1_000);
      now();
    }
    expect(now() - before).toBe(75_000 * 1.5);
    clocks.wallMs -= jumpMs;
    pass(86_400_000);
    expect(now() - Math.floor(clocks.wallMs)).toBe(37_500);
  });

  it("catches up with a clock that was set to the right time, at 1.5 times the speed of time", () => {
    const { clocks, pass, now } = machine();
    clocks.wallMs += 3_600_000;
    for (let second = 0; second < 7_190; second++) {
      expect(now()).toBeLessThan(clocks.wallMs);
      pass(1_000);
    }
    // The last seconds are added in one small step.
    now();
    pass(1_000);
    expect(now()).toBe(Math.floor(clocks.wallMs));
  });

  it("does not catch up faster because it was not read for a long time", () => {
    const { clocks, pass, now } = machine();
    pass(86_400_000);
    clocks.wallMs += 40 * 86_400_000;
    expect(now()).toBe(1_000_000 + 86_400_000 + 7_500);
  });

  it("continues when the wall clock is set back, and follows it again when the wall clock has caught up", () => {
    const { clocks, pass, now } = machine();
    pass(1_000);
    const before = now();
    clocks.wallMs -= 3_600_000;
    expect(now()).toBe(before);
    pass(30_000);
    expect(now()).toBe(before + 30_000);
    clocks.wallMs += 3_600_000;
    pass(5_000);
    expect(now()).toBe(before + 35_000);
    expect(now()).toBe(clocks.wallMs);
  });

  it("never goes back, also when the clock was set forward before", () => {
    const { clocks, pass, now } = machine();
    clocks.wallMs += 4_000;
    const before = now();
    clocks.wallMs -= 4_000;
    pass(10);
    expect(now()).toBe(before + 10);
  });

  it("does not stay ahead because the process was blocked during a read", () => {
    const { clocks, pass } = machine();
    let heldUpMs = 0;
    const held = <Time>(seen: Time): Time => {
      pass(heldUpMs);
      return seen;
    };
    const now = steadyTime({
      wall: () => held(Math.floor(clocks.wallMs)),
      steady: () => held(clocks.steadyMs),
      uptime: () => clocks.steadyMs,
    });
    heldUpMs = 70;
    now();
    heldUpMs = 0;
    for (const ms of [0, 1, 1_000]) {
      pass(ms);
      expect(now()).toBe(Math.floor(clocks.wallMs));
    }
  });

  it("of this machine is the wall clock's time", () => {
    expect(Math.abs(systemClock.now() - Date.now())).toBeLessThan(1_000);
  });
});

describe("a timer", () => {
  let wallMs = 0;
  beforeEach(() => {
    wallMs = 1_000_000;
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  });
  afterEach(() => vi.useRealTimers());
  const pass = (ms: number) => {
    wallMs += ms;
    vi.advanceTimersByTime(ms);
  };

  it("fires at its time and not before, once", () => {
    const clock = clockOf(() => wallMs);
    let fired = 0;
    clock.at(1_060_000, () => fired++);
    pass(59_999);
    expect(fired).toBe(0);
    pass(1);
    expect(fired).toBe(1);
    pass(120_000);
    expect(fired).toBe(1);
  });

  it("notices within seconds that the machine has slept past its time", () => {
    const clock = clockOf(() => wallMs);
    let fired = 0;
    clock.at(wallMs + 8 * 3_600_000, () => fired++);
    pass(1_000);
    wallMs += 9 * 3_600_000;
    pass(15_000);
    expect(fired).toBe(1);
  });

  it("that is cancelled does not fire, also after it has checked the time once", () => {
    const clock = clockOf(() => wallMs);
    let fired = 0;
    const cancel = clock.at(wallMs + 60_000, () => fired++);
    pass(40_000);
    cancel();
    cancel();
    pass(60_000);
    expect(fired).toBe(0);
  });
});
