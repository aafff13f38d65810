import { describe, expect, it } from "vitest";
import { eligible, Lanes, laneKey, laneOf } from "./lanes.ts";
import { Waiter } from "./waiters.ts";

const reach = (names: string[], labels: string[] = []) => ({ names, labels });

function setup() {
  const lanes = new Lanes();
  let sequence = 0;
  const put = (name: string, labels: string[] = [], priority = 0) =>
    lanes.queue(laneOf(name, labels)).ready.push({ id: `${name}-${sequence}`, priority, sequence: sequence++ });
  return { lanes, put };
}

describe("lanes", () => {
  it("are one and the same for the same name and labels in any order", () => {
    const { lanes } = setup();
    expect(lanes.queue(laneOf("build", ["gpu", "linux", "gpu"]))).toBe(lanes.queue(laneOf("build", ["linux", "gpu"])));
    expect(lanes.queue(laneOf("build"))).not.toBe(lanes.queue(laneOf("build", ["linux"])));
    expect(laneKey(laneOf("a", ["b"]))).not.toBe(laneKey(laneOf("ab")));
  });

  it("may be taken from by claims that name them and carry all their labels", () => {
    const lane = laneOf("build", ["gpu", "linux"]);
    expect(eligible(lane, reach(["build"], ["linux", "gpu", "fast"]))).toBe(true);
    expect(eligible(lane, reach(["test", "build"], ["gpu", "linux"]))).toBe(true);
    expect(eligible(lane, reach(["build"], ["linux"]))).toBe(false);
    expect(eligible(lane, reach(["test"], ["gpu", "linux"]))).toBe(false);
    expect(eligible(laneOf("build"), reach(["build"]))).toBe(true);
  });

  it("hold their tasks by priority, then in order of queueing", () => {
    const { lanes, put } = setup();
    put("a");
    put("a", [], 5);
    put("a", [], -1);
    put("a");
    const { ready } = lanes.queue(laneOf("a"));
    expect(Array.from({ length: 4 }, () => ready.pop()?.sequence)).toEqual([2, 0, 3, 1]);
  });

  it("become known to claims made before them, and claims to lanes made before", () => {
    const { lanes } = setup();
    const early = lanes.queue(laneOf("build"));
    const group = lanes.group(reach(["build"], ["gpu"]), 1);
    const late = lanes.queue(laneOf("build", ["gpu"]));
    lanes.queue(laneOf("build", ["arm"]));
    expect(group.lanes).toEqual([early, late]);
    expect(late.groups.has(group)).toBe(true);
  });

  it("share one group among claims with the same reach", () => {
    const { lanes } = setup();
    expect(lanes.group(reach(["a"], ["x"]), 1)).toBe(lanes.group(reach(["a"], ["x"]), 2));
    expect(lanes.group(reach(["a"], ["x"]), 1)).not.toBe(lanes.group(reach(["a", "x"]), 2));
  });

  it("are chosen in the order given, the first with a recent poller", () => {
    const { lanes } = setup();
    const [first, second, last] = [laneOf("first"), laneOf("second"), laneOf("last")];
    expect(lanes.choose([first, second, last], 0)).toEqual(last);
    lanes.group(reach(["second"]), 100);
    expect(lanes.choose([first, second, last], 40)).toEqual(second);
    expect(lanes.choose([first, second, last], 101)).toEqual(last);
    lanes.group(reach(["first", "second"]), 150);
    expect(lanes.choose([first, second, last], 140)).toEqual(first);
    expect(lanes.choose([first], 1_000)).toEqual(first);
  });

  it("are chosen for a claim that has waited there for long", () => {
    const { lanes } = setup();
    const group = lanes.group(reach(["first"]), 1);
    const waiter = new Waiter({ group, holder: "ann", termMs: 1, arrival: 1, settle: () => {} });
    expect(lanes.choose([laneOf("first"), laneOf("last")], 1_000)).toEqual(laneOf("first"));
    waiter.leave();
    expect(lanes.choose([laneOf("first"), laneOf("last")], 1_000)).toEqual(laneOf("last"));
  });

  it("refuse a task that names none", () => {
    expect(() => setup().lanes.choose([], 0)).toThrow("at least one lane");
  });

  it("are forgotten when there are many, nothing stands on them and nobody has asked for them lately", () => {
    const { lanes, put } = setup();
    put("kept", ["full"]);
    for (let made = 0; made < 30_000; made++) lanes.queue(laneOf("work", [`label-${made}`]));
    const group = lanes.group(reach(["work"], ["label-29999"]), 100_000);
    lanes.queue(laneOf("kept", ["another"]));
    for (let made = 0; made < 30_000; made++) lanes.queue(laneOf("more", [`label-${made}`]));
    expect([...lanes.all()].length).toBeLessThan(25_000);
    expect(lanes.queue(laneOf("kept", ["full"])).ready.size).toBe(1);
    expect(group.lanes).toEqual([lanes.queue(laneOf("work", ["label-29999"]))]);
  });

  it("forget claims that nobody makes any more, never those that wait", () => {
    const { lanes } = setup();
    const queue = lanes.queue(laneOf("a"));
    const first = lanes.group(reach(["a"], ["first"]), 0);
    new Waiter({ group: first, holder: "ann", termMs: 1, arrival: 1, settle: () => {} });
    for (let made = 0; made < 5_000; made++) lanes.group(reach(["a"], [`worker-${made}`]), made + 1);
    expect(queue.groups.size).toBeLessThanOrEqual(2_000);
    expect(queue.groups.has(first)).toBe(true);
    expect(lanes.waiting()).toBe(1);
  });
});
