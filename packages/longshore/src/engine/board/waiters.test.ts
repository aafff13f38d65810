import { describe, expect, it } from "vitest";
import { Lanes, laneOf } from "./lanes.ts";
import type { TaskRow } from "./task.ts";
import { Waiter } from "./waiters.ts";

const t1 = { id: "t1" } as TaskRow;

function setup() {
  const lanes = new Lanes();
  const settled: [string, string | null][] = [];
  let arrival = 0;
  const wait = (holder: string, labels: string[] = []) =>
    new Waiter({
      group: lanes.group({ names: ["build"], labels }, 1),
      holder,
      termMs: 1_000,
      arrival: ++arrival,
      settle: (task) => settled.push([holder, task?.id ?? null]),
    });
  const next = () => lanes.nextWaiter(laneOf("build"))?.holder;
  return { lanes, settled, wait, next };
}

describe("waiters", () => {
  it("wait in order of arrival, for any labels", () => {
    const { wait, next } = setup();
    const ann = wait("ann", ["gpu"]);
    const bob = wait("bob");
    const cy = wait("cy", ["gpu"]);
    expect(next()).toBe("ann");
    ann.reserve();
    expect(next()).toBe("bob");
    bob.reserve();
    expect(next()).toBe("cy");
    cy.reserve();
    expect(next()).toBeUndefined();
  });

  it("are not tried for lanes that they may not take from", () => {
    const { lanes, wait } = setup();
    wait("ann");
    expect(lanes.nextWaiter(laneOf("build", ["gpu"]))).toBeUndefined();
    expect(lanes.nextWaiter(laneOf("test"))).toBeUndefined();
  });

  it("get their old place back when the transaction fails", () => {
    const { wait, next } = setup();
    const ann = wait("ann");
    const bob = wait("bob");
    wait("cy");
    ann.reserve();
    bob.reserve();
    bob.release();
    ann.release();
    expect(next()).toBe("ann");
    ann.leave();
    expect(next()).toBe("bob");
  });

  it("are settled once: a task that is ready after they left is not theirs", () => {
    const { settled, wait, next } = setup();
    const ann = wait("ann");
    ann.leave();
    ann.leave();
    expect(ann.deliver(t1)).toBe(false);
    expect(settled).toEqual([["ann", null]]);
    expect(next()).toBeUndefined();
  });

  it("keep the task that was delivered before they left", () => {
    const { settled, wait } = setup();
    const ann = wait("ann");
    ann.reserve();
    expect(ann.deliver(t1)).toBe(true);
    ann.leave();
    expect(settled).toEqual([["ann", "t1"]]);
  });

  it("never lose a wake-up: a waiter that left while reserved does not wait again", () => {
    const { wait, next } = setup();
    const ann = wait("ann");
    wait("bob");
    ann.reserve();
    ann.leave();
    ann.release();
    expect(next()).toBe("bob");
  });
});
