import { describe, expect, it } from "vitest";
import { atOnce, sliceItems } from "../../core/slices/slice-work.ts";
import { makePlan } from "./make-plan.ts";
import type { Plan, PlanNode } from "./plan.ts";
import { tryOnce } from "./retry.ts";
import { edgesMax, planGraph } from "./run-graph.ts";

const work = (id: string, after: readonly number[] = [], more: object = {}): PlanNode => ({
  ...{ id, kind: "task", input: null, after, waitsFor: "done", timeouts: {} },
  ...{ lanes: [{ name: id, labels: [] }], priority: 0, retry: tryOnce, limits: [] },
  ...more,
});
const instant = (id: string, after: readonly number[] = [], more: object = {}): PlanNode => ({
  ...{ id, kind: "instant", input: null, after, waitsFor: "done", timeouts: {}, output: null },
  ...more,
});
const planOf = (...nodes: PlanNode[]): Plan => makePlan({ dialect: "d", nodes, output: null });

function linesOf(plan: Plan): string[] {
  const { ids, edges, edgeKinds, edgeLabels } = atOnce(planGraph(plan));
  return edges.map(([from, to], at) => [ids[from], edgeKinds[at], edgeLabels[at], ids[to]].filter((part) => part !== null).join(" "));
}

describe("the graph of a plan", () => {
  it("shows which steps need only a first part, and how many of several are enough", () => {
    const plan = planOf(
      work("a"),
      work("b"),
      work("c"),
      work("early", [0], { onFirstPart: [0] }),
      work("some", [0, 1, 2], { threshold: 2, onFirstPart: [2] }),
    );
    expect(linesOf(plan)).toEqual(["a first-part early", "a threshold 2 of 3 some", "b threshold 2 of 3 some", "c first-part some"]);
  });

  it("replaces a hidden node by what leads to it, with the choice on the way", () => {
    const cases = new Map([["yes", [2]]]);
    const plan = planOf(
      work("a"),
      instant("hidden", [0], { hidden: true, choice: { by: null, cases, otherwise: [3] } }),
      work("b", [], { demanded: true }),
      work("c", [], { demanded: true }),
      instant("wait", [2, 3], { hidden: true, waitsFor: "any" }),
      work("d", [4]),
    );
    expect(linesOf(plan)).toEqual(["a case yes b", "a case otherwise c", "b after d", "c after d"]);
    const { groups, groupList, ids } = atOnce(planGraph(plan));
    expect(ids).toEqual(["a", "b", "c", "d"]);
    expect(groupList).toEqual([
      { label: "yes", of: null, parent: null },
      { label: "otherwise", of: null, parent: null },
    ]);
    expect(groups).toEqual([null, 0, 1, null]);
  });

  it("is made in slices, also where nothing leads to a node", () => {
    const count = 5_000;
    const making = planGraph(planOf(...Array.from({ length: count }, (_, at) => work(`s${at}`))));
    let slices = 1;
    while (making.next().done !== true) slices++;
    // Three passes visit all nodes.
    expect(slices).toBeGreaterThan((3 * count) / sliceItems);
  });

  it("names all cases that choose the same step", () => {
    const cases = new Map([
      ["one", [1]],
      ["two", [1]],
    ]);
    const plan = planOf(instant("s", [], { choice: { by: null, cases, otherwise: [] } }), work("a", [], { demanded: true }));
    expect(linesOf(plan)).toEqual(["s case one, two a"]);
  });

  it("leaves out the edges above its limit, and reports that", () => {
    const side = 400;
    const sources = Array.from({ length: side }, (_, at) => work(`a${at}`));
    const middle = instant("all", [...sources.keys()], { hidden: true });
    const targets = Array.from({ length: side }, (_, at) => work(`b${at}`, [side]));
    const { edges, isCut } = atOnce(planGraph(planOf(...sources, middle, ...targets)));
    expect([edges.length, isCut]).toEqual([edgesMax, true]);
  });
});
