import { describe, expect, it } from "vitest";
import { type LimitKey, Limits } from "./limits.ts";

const two: LimitKey[] = [{ key: "api", held: 2 }];
const rate: LimitKey[] = [{ key: "mail", rate: { count: 3, windowMs: 1_000 } }];

describe("limits", () => {
  it("let nobody in above the number held at once, until one comes back", () => {
    const limits = new Limits();
    limits.take(two, 0);
    expect(limits.blocked(two, 0)).toBeNull();
    limits.take(two, 0);
    expect(limits.blocked(two, 0)).toEqual({ key: "api", freeAt: null });
    limits.giveBack(two);
    expect(limits.blocked(two, 0)).toBeNull();
  });

  it("slide their window: the oldest hand-out opens it again, not the turn of a period", () => {
    const limits = new Limits();
    for (const at of [0, 400, 900]) limits.take(rate, at);
    expect(limits.blocked(rate, 999)).toEqual({ key: "mail", freeAt: 1_000 });
    expect(limits.blocked(rate, 1_000)).toBeNull();
    limits.take(rate, 1_000);
    expect(limits.blocked(rate, 1_000)).toEqual({ key: "mail", freeAt: 1_400 });
    limits.take(rate, 1_400);
    expect(limits.blocked(rate, 1_899)).toEqual({ key: "mail", freeAt: 1_900 });
  });

  it("keep their window in order of time, whatever the order in which hand-outs are told", () => {
    const limits = new Limits();
    for (const at of [900, 100, 500]) limits.take(rate, at);
    expect(limits.blocked(rate, 1_000)).toEqual({ key: "mail", freeAt: 1_100 });
    limits.untake(rate, 500);
    limits.take(rate, 950);
    expect(limits.blocked(rate, 1_000)).toEqual({ key: "mail", freeAt: 1_100 });
    expect(limits.blocked(rate, 1_100)).toBeNull();
    limits.take(rate, 1_100);
    expect(limits.blocked(rate, 1_100)).toEqual({ key: "mail", freeAt: 1_900 });
  });

  it("count hand-outs of a window even after they came back", () => {
    const limits = new Limits();
    for (let handedOut = 0; handedOut < 3; handedOut++) {
      limits.take(rate, 0);
      limits.giveBack(rate);
    }
    expect(limits.blocked(rate, 500)).toEqual({ key: "mail", freeAt: 1_000 });
  });

  it("ask for room under every key", () => {
    const limits = new Limits();
    const both: LimitKey[] = [...two, { key: "disk", held: 1 }];
    limits.take([{ key: "disk", held: 1 }], 0);
    expect(limits.blocked(both, 0)).toEqual({ key: "disk", freeAt: null });
    expect(limits.blocked(two, 0)).toBeNull();
  });

  it("wake those who are parked on a key when one comes back, once", () => {
    const limits = new Limits();
    limits.take(two, 0);
    limits.park("api", "a");
    limits.park("api", "b");
    limits.park("disk", "c");
    limits.unpark("api", "b");
    expect(limits.giveBack(two)).toEqual([{ key: "api", taskId: "a" }]);
    limits.take(two, 0);
    expect(limits.giveBack(two)).toEqual([]);
  });

  it("are as before when a hand-out is undone", () => {
    const limits = new Limits();
    limits.take(rate, 0);
    limits.take(rate, 1);
    limits.untake(rate, 1);
    limits.take(rate, 2);
    expect(limits.blocked(rate, 3)).toBeNull();
    expect(limits.held("mail")).toBe(2);
  });

  it("are as before when a coming back is undone", () => {
    const limits = new Limits();
    limits.take([...two, ...rate], 0);
    limits.park("api", "a");
    const woken = limits.giveBack([...two, ...rate]);
    limits.takeAgain([...two, ...rate], woken);
    expect([limits.held("api"), limits.held("mail")]).toEqual([1, 1]);
    limits.take(rate, 1);
    expect(limits.blocked(rate, 2)).toBeNull();
    expect(limits.giveBack(two)).toEqual([{ key: "api", taskId: "a" }]);
  });
});
