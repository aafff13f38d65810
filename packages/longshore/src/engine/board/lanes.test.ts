import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { eligible, goesBefore, Lanes, laneKey, laneOf, type Place, type Reach } from "./lanes.ts";
import type { Lane } from "./task.ts";
import { Waiter } from "./waiters.ts";

const reach = (names: string[], labels: string[] = []) => ({ names, labels });

function setup() {
  const lanes = new Lanes();
  let sequence = 0;
  const put = (name: string, labels: string[] = [], priority = 0) =>
    lanes.push(laneOf(name, labels), { id: `${name}-${sequence}`, priority, sequence: sequence++ });
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

  it("are found by claims that were made before them, and by claims that were made after them", () => {
    const { lanes, put } = setup();
    put("build");
    const group = lanes.group(reach(["build"], ["gpu"]), 1);
    put("build", ["gpu"]);
    put("build", ["arm"], -5);
    const taken = () => {
      const queue = lanes.first(group);
      return queue === null ? null : lanes.pop(queue)?.id;
    };
    expect([taken(), taken(), taken()]).toEqual(["build-0", "build-1", null]);
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

  it("are chosen when a claim has waited there for a long time", () => {
    const { lanes } = setup();
    const group = lanes.group(reach(["first"]), 1);
    const waiter = new Waiter({ group, holder: "ann", termMs: 1, arrival: 1, settle: () => {} });
    expect(lanes.choose([laneOf("first"), laneOf("last")], 1_000)).toEqual(laneOf("first"));
    waiter.leave();
    expect(lanes.choose([laneOf("first"), laneOf("last")], 1_000)).toEqual(laneOf("last"));
  });

  it("refuse a task that names no lane", () => {
    expect(() => setup().lanes.choose([], 0)).toThrow("at least one lane");
  });

  it("are forgotten when there are many and they hold no task, and made again for a task that is put back", () => {
    const { lanes, put } = setup();
    put("kept", ["full"]);
    put("put back", ["late"]);
    const queue = lanes.queue(laneOf("put back", ["late"]));
    const place = lanes.pop(queue);
    for (let made = 0; made < 30_000; made++) lanes.queue(laneOf("work", [`label-${made}`]));
    expect(lanes.size).toBe(10_001);
    expect(lanes.queue(laneOf("kept", ["full"])).ready.size).toBe(1);
    expect(lanes.queue(laneOf("put back", ["late"]))).not.toBe(queue);
    lanes.push(queue.lane, place as Place);
    const found = lanes.first(lanes.group(reach(["put back"], ["late"]), 1));
    expect(found?.ready.peek()).toBe(place);
  });

  it("forget claims that no worker makes any longer, never those that wait", () => {
    const { lanes } = setup();
    const first = lanes.group(reach(["a"], ["first"]), 0);
    new Waiter({ group: first, holder: "ann", termMs: 1, arrival: 1, settle: () => {} });
    const idle = lanes.group(reach(["a"], ["idle"]), 0);
    for (let made = 0; made < 5_000; made++) lanes.group(reach(["a"], [`worker-${made}`]), made + 1);
    expect(lanes.group(reach(["a"], ["first"]), 9_000)).toBe(first);
    expect(lanes.group(reach(["a"], ["idle"]), 9_000)).not.toBe(idle);
    expect(lanes.awaiting(laneOf("a"))).toBe(1);
    expect(lanes.awaiting(laneOf("a", ["gpu"]))).toBe(0);
  });

  it("refuse a claim that waits when a thousand others name the same lane with other labels", () => {
    const { lanes } = setup();
    const wait = (label: string, arrival: number) =>
      new Waiter({ group: lanes.group(reach(["a"], [label]), 1), holder: "ann", termMs: 1, arrival, settle: () => {} });
    for (let made = 0; made < 1_000; made++) wait(`worker-${made}`, made);
    expect(() => wait("one more", 1_000)).toThrow("1000 different sets of names and labels wait for a");
    expect(wait("worker-7", 1_001).group.size).toBe(2);
    lanes.nextWaiter(laneOf("a"))?.leave();
    expect(wait("one more", 1_002).group.size).toBe(1);
  });
});

describe("the first lane for a claim", () => {
  it("is the one that a search of all lanes finds, after any puts, takes and returns", () => {
    const labels = ["a", "b", "c", "d", "e"];
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            verb: fc.constantFrom("put", "put", "take", "back"),
            name: fc.constantFrom("x", "y"),
            labels: fc.subarray(labels),
            priority: fc.integer({ min: -1, max: 1 }),
          }),
          { maxLength: 60 },
        ),
        (steps) => {
          const { lanes, put } = setup();
          const taken: { lane: Lane; place: Place }[] = [];
          for (const { verb, name, labels: some, priority } of steps) {
            if (verb === "put") put(name, some, priority);
            else if (verb === "back") {
              const last = taken.pop();
              if (last !== undefined) lanes.push(last.lane, last.place);
            } else {
              const asked = reach(priority === 0 ? ["x", "y"] : [name], some);
              const queue = lanes.first(lanes.group(asked, 1));
              expect(queue?.ready.peek()).toBe(firstByLooking(lanes, asked));
              if (queue !== null) taken.push({ lane: queue.lane, place: lanes.pop(queue) as Place });
            }
          }
        },
      ),
    );
  });

  it("has a cost that depends on the claim's names and labels, and not on the number of lanes", () => {
    const { lanes, put } = setup();
    for (let made = 0; made < 100_000; made++) put("work", [`only-${made}`]);
    const all = Array.from({ length: 900 }, (_, at) => `only-${at * 100}`);
    const group = lanes.group(reach(["work"], all), 1);
    const before = lanes.steps;
    expect(lanes.first(group)?.lane.labels).toEqual(["only-0"]);
    expect(lanes.steps - before).toBeLessThan(1_000);
  });
});

function firstByLooking(lanes: Lanes, asked: Reach): Place | undefined {
  let best: Place | undefined;
  for (const { lane, ready } of lanes.all()) {
    const head = ready.peek();
    if (head !== undefined && eligible(lane, asked) && (best === undefined || goesBefore(head, best))) best = head;
  }
  return best;
}
