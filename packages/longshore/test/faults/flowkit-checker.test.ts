// The checker of streams reports every kind of broken promise, and nothing else.
import { describe, expect, it } from "vitest";
import { checkGraphs, type FinalGraph, type FinalPart } from "./flowkit-checker.ts";
import { expectedOf, sumOf } from "./flowkit-shape.ts";
import type { Entry } from "./history.ts";

const shape = { batches: 4, ms: 0 };

/** A correct history: every batch was processed once, in the first epoch, and is counted. */
function setup() {
  let tick = 0;
  const history: Entry[] = [];
  const write = (happening: Record<string, unknown>): void => {
    tick++;
    history.push({ at: tick, tick, where: `w.jsonl:${tick}`, ...happening } as Entry);
  };
  write({ kind: "graph-acknowledged", task: "T", shape: "" });
  const parts = new Map<string, FinalPart[]>();
  for (const [node, expected] of expectedOf(shape)) {
    write({ kind: "node-begun", task: "T", node, epoch: 1 });
    const made: FinalPart[] = [];
    for (const [uid, items] of expected) {
      const token = `${node}-${uid}`;
      write({ kind: "batch-processed", task: "T", node, epoch: 1, uid, token });
      made.push({ uid, epoch: 1, sequence: made.length + 1, items, token });
    }
    parts.set(node, made);
  }
  const graph: FinalGraph = { id: "T", status: "finished", parts, sum: sumOf(shape) };
  const partsOf = (node: string): FinalPart[] => parts.get(node) as FinalPart[];
  const rules = (changed: Partial<FinalGraph> = {}): string[] =>
    checkGraphs(history, { shape, fenced: true, graphs: [{ ...graph, ...changed }] }).map(({ rule }) => rule);
  return { history, write, partsOf, rules };
}

describe("the checker of streams", () => {
  it("reports nothing in a correct history", () => {
    expect(setup().rules()).toEqual([]);
  });

  it("reports a batch that is not counted", () => {
    const { partsOf, rules } = setup();
    partsOf("d").splice(2, 1);
    expect(new Set(rules())).toEqual(new Set(["no-batch-lost", "nothing-missed"]));
  });

  it("reports a batch without some of its items", () => {
    const { partsOf, rules } = setup();
    partsOf("e")[0] = { ...(partsOf("e")[0] as FinalPart), items: ["item-0"] };
    expect(rules()).toEqual(["no-batch-lost"]);
  });

  it("reports a batch that is counted twice, and one that was not requested", () => {
    const { partsOf, rules } = setup();
    partsOf("j").push(partsOf("j")[0] as FinalPart);
    expect(rules()).toEqual(["no-batch-twice"]);
    partsOf("u").push({ ...(partsOf("u")[0] as FinalPart), uid: "b99" });
    expect(new Set(rules())).toEqual(new Set(["no-batch-twice", "counted-was-processed", "nothing-missed"]));
  });

  it("reports a finished reader that has missed output of its source, although all expected output exists", () => {
    const { write, partsOf, rules } = setup();
    write({ kind: "batch-processed", task: "T", node: "u", epoch: 1, uid: "b4", token: "u-b4" });
    partsOf("u").push({ uid: "b4", epoch: 1, sequence: 5, items: ["item-12"], token: "u-b4" });
    expect(rules()).toEqual(["no-batch-twice", "nothing-missed", "nothing-missed"]);
  });

  it("reports a node that begins again and again, but not one that began again because of an absence", () => {
    const { write, rules } = setup();
    for (let epoch = 3; epoch <= 5; epoch += 2) write({ kind: "node-begun", task: "T", node: "d", epoch });
    expect(rules()).toEqual(["progress"]);
    write({ kind: "process-killed", name: "worker-0" });
    expect(rules()).toEqual([]);
  });

  it("reports an invented result", () => {
    const { partsOf, rules } = setup();
    partsOf("u")[1] = { ...(partsOf("u")[1] as FinalPart), token: "invented" };
    expect(rules()).toEqual(["counted-was-processed"]);
  });

  it("reports a result of an attempt after the next attempt had begun", () => {
    const { history, partsOf, rules, write } = setup();
    write({ kind: "process-killed", name: "worker-0" });
    const made = history.find((entry) => entry.kind === "batch-processed" && entry.token === partsOf("d")[3]?.token) as Entry;
    history.push({ kind: "node-begun", task: "T", node: "d", epoch: 2, at: made.at, tick: made.tick - 0.5, where: "x:1" } as Entry);
    expect(new Set(rules())).toEqual(new Set(["counted-from-newest-attempt"]));
  });

  it("reports a wrong sum, a graph that has not finished, and a missing graph", () => {
    const { history, rules } = setup();
    expect(rules({ sum: 1 })).toEqual(["sums-are-right"]);
    expect(rules({ status: "running" })).toEqual(["every-run-ends"]);
    expect(checkGraphs(history, { shape, fenced: true, graphs: [] }).map(({ rule }) => rule)).toEqual(["acknowledged-run-kept"]);
  });
});
