import { describe, expect, it } from "vitest";
import { laneOf } from "./lanes.ts";
import { type LimitKey, Limits, parkingKey } from "./limits.ts";

const two: LimitKey[] = [{ key: "api", held: 2 }];
const rate: LimitKey[] = [{ key: "mail", rate: { count: 3, windowMs: 1_000 } }];

describe("limits", () => {
  it("hand out no task above the number held at once, until one is returned", () => {
    const limits = new Limits();
    limits.take(two, 0);
    expect(limits.blocked(two, 0)).toBeNull();
    limits.take(two, 0);
    expect(limits.blocked(two, 0)).toMatchObject({ limit: { key: "api" }, freeAt: null });
    limits.giveBack(two);
    expect(limits.blocked(two, 0)).toBeNull();
  });

  it("use a sliding window: there is room again when the oldest hand-out leaves it", () => {
    const limits = new Limits();
    for (const at of [0, 400, 900]) limits.take(rate, at);
    expect(limits.blocked(rate, 999)).toMatchObject({ limit: { key: "mail" }, freeAt: 1_000 });
    expect(limits.blocked(rate, 1_000)).toBeNull();
    limits.take(rate, 1_000);
    expect(limits.blocked(rate, 1_000)).toMatchObject({ limit: { key: "mail" }, freeAt: 1_400 });
    limits.take(rate, 1_400);
    expect(limits.blocked(rate, 1_899)).toMatchObject({ limit: { key: "mail" }, freeAt: 1_900 });
  });

  it("keep their window in order of time, for any order of hand-outs", () => {
    const limits = new Limits();
    for (const at of [900, 100, 500]) limits.take(rate, at);
    expect(limits.blocked(rate, 1_000)).toMatchObject({ limit: { key: "mail" }, freeAt: 1_100 });
    limits.untake(rate, 500);
    limits.take(rate, 950);
    expect(limits.blocked(rate, 1_000)).toMatchObject({ limit: { key: "mail" }, freeAt: 1_100 });
    expect(limits.blocked(rate, 1_100)).toBeNull();
    limits.take(rate, 1_100);
    expect(limits.blocked(rate, 1_100)).toMatchObject({ limit: { key: "mail" }, freeAt: 1_900 });
  });

  it("count hand-outs of a window even after they were returned", () => {
    const limits = new Limits();
    for (let handedOut = 0; handedOut < 3; handedOut++) {
      limits.take(rate, 0);
      limits.giveBack(rate);
    }
    expect(limits.blocked(rate, 500)).toMatchObject({ limit: { key: "mail" }, freeAt: 1_000 });
  });

  it("need room under every key", () => {
    const limits = new Limits();
    const both: LimitKey[] = [...two, { key: "disk", held: 1 }];
    limits.take([{ key: "disk", held: 1 }], 0);
    expect(limits.blocked(both, 0)).toMatchObject({ limit: { key: "disk" }, freeAt: null });
    expect(limits.blocked(two, 0)).toBeNull();
  });

  it("group the waiting tasks by lane and by the limit that they need, and keep the order in each group", () => {
    const limits = new Limits();
    const [api] = two as [LimitKey];
    const [here, there] = [laneOf("a"), laneOf("b")];
    const place = (id: string, sequence: number, priority = 0) => ({ id, sequence, priority });
    limits.take(two, 0);
    for (const parked of [place("later", 2), place("first", 1), place("urgent", 3, -1)]) limits.park(parkingKey(api, here), parked);
    limits.park(parkingKey(api, there), place("elsewhere", 4));
    limits.park(parkingKey({ ...api, held: 9 }, here), place("modest", 5));
    limits.park(parkingKey({ key: "disk" }, here), place("other", 6));
    expect(limits.parked("api").map((key) => limits.nextParked(key)?.id)).toEqual(["urgent", "elsewhere", "modest"]);
    expect(limits.parked("api").map((key) => limits.nextParked(key)?.id)).toEqual(["first"]);
    limits.unpark(parkingKey(api, here), place("later", 2));
    expect(limits.parked("api")).toEqual([]);
  });

  it("return a task once although it is parked twice, and at its new place when it was queued again", () => {
    const limits = new Limits();
    const key = parkingKey({ key: "api", held: 1 }, laneOf("a"));
    limits.park(key, { id: "t", sequence: 1, priority: 0 });
    limits.park(key, { id: "t", sequence: 1, priority: 0 });
    limits.park(key, { id: "t", sequence: 8, priority: 0 });
    limits.park(key, { id: "u", sequence: 5, priority: 0 });
    expect([limits.nextParked(key)?.id, limits.nextParked(key)?.sequence, limits.nextParked(key)]).toEqual(["u", 8, undefined]);
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

  it("are as before when the return of a hold is undone", () => {
    const limits = new Limits();
    limits.take([...two, ...rate], 0);
    limits.giveBack([...two, ...rate]);
    limits.hold([...two, ...rate]);
    expect([limits.held("api"), limits.held("mail")]).toEqual([1, 1]);
    limits.take(rate, 1);
    expect(limits.blocked(rate, 2)).toBeNull();
  });
});
