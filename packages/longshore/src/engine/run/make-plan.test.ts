import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findCycle, makePlan } from "./make-plan.ts";
import type { PlanNode } from "./plan.ts";

const node = (id: string, after: number[]): PlanNode => ({
  kind: "run",
  id,
  after,
  input: null,
  waitsFor: "done",
  timeouts: {},
  workflow: "w",
});

describe("plans", () => {
  it("know who waits for whom, each once, in the order of definition", () => {
    const plan = makePlan({ dialect: "d", nodes: [node("a", []), node("b", [0, 0]), node("c", [0, 1])], output: null });
    expect(plan.dependents).toEqual([[1, 2], [2], []]);
    expect(plan.nodes[1]?.after).toEqual([0]);
    expect(plan.index.get("c")).toBe(2);
    expect(plan.timeoutMs).toBeNull();
  });

  it("find no circle in a plan without one", () => {
    expect(findCycle([])).toBeNull();
    expect(findCycle([node("a", []), node("b", [0]), node("c", [0, 1])])).toBeNull();
    expect(findCycle([node("c", [1, 2]), node("b", [2]), node("a", [])])).toBeNull();
  });

  it("name the steps along a circle, from one of them back to it", () => {
    expect(findCycle([node("a", [0])])).toEqual(["a", "a"]);
    expect(findCycle([node("x", []), node("a", [2, 0]), node("b", [3]), node("c", [1])])).toEqual(["a", "b", "c", "a"]);
  });

  it("are searched for circles along a chain of any length", () => {
    const chain = Array.from({ length: 20_000 }, (_, at) => node(`s${at}`, at === 0 ? [] : [at - 1]));
    expect(findCycle([...chain].reverse().map((step) => ({ ...step, after: step.after.map((up) => chain.length - 1 - up) })))).toBeNull();
    expect(findCycle(chain.map((step, at) => (at === 0 ? node("s0", [chain.length - 1]) : step)))).toHaveLength(20_001);
  });

  it("find a circle exactly when there is one, and name a real one", () => {
    const graph = fc
      .integer({ min: 1, max: 8 })
      .chain((size) => fc.array(fc.array(fc.nat(size - 1), { maxLength: 3 }), { minLength: size, maxLength: size }));
    fc.assert(
      fc.property(graph, (edges) => {
        const cycle = findCycle(edges.map((after, at) => node(`${at}`, after)));
        expect(cycle !== null).toBe(reachesItself(edges));
        if (cycle === null) return;
        expect(cycle[0]).toBe(cycle.at(-1));
        for (let at = 1; at < cycle.length; at++) expect(edges[Number(cycle[at - 1])]).toContain(Number(cycle[at]));
      }),
    );
  });
});

/** The slow and obvious way. */
function reachesItself(edges: number[][]): boolean {
  return edges.some((_, start) => {
    const seen = new Set<number>(edges[start]);
    for (const at of seen) for (const next of edges[at] ?? []) seen.add(next);
    return seen.has(start);
  });
}
