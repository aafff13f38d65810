// The work for each task of a fork, and for each iteration of a loop, does not depend on their number. It is done in slices.

import { describe, expect, it } from "vitest";
import { scopeOf } from "../../../../test/support/scope.ts";
import type { Json, JsonObject } from "../../../core/json/json.ts";
import { sliceItems } from "../../../core/slices/slice-work.ts";
import { Slices, turnRows } from "../../../core/slices/slices.ts";
import { ReservedLanes } from "../../../engine/board/reserved-lanes.ts";
import type { TaskRow } from "../../../engine/board/task.ts";
import { brainOf } from "../../../engine/run/brain.ts";
import type { Resolved, Scope } from "../../../engine/run/dialect.ts";
import type { Grown, InstantNode, JoinNode, Plan } from "../../../engine/run/plan.ts";
import { conductorDialect } from "./dialect.ts";
import { growthOf, type Loop, loopsOf } from "./loops.ts";
import { parseWorkflowDef } from "./workflow-def.ts";

const dialect = conductorDialect();

function planOf(tasks: readonly object[], grown: readonly object[] = []): Plan {
  const parsed = parseWorkflowDef({ name: "w", tasks }, "w");
  if ("violations" in parsed) throw new Error(JSON.stringify(parsed.violations));
  return dialect.compile(JSON.stringify({ ...parsed.value, grown }));
}

describe("a fork of a thousand tasks", () => {
  const fork = {
    ...{ name: "fork", taskReferenceName: "fork", type: "FORK_JOIN_DYNAMIC" },
    ...{ inputParameters: { tasks: "${workflow.input.tasks}", inputs: {} } },
    ...{ dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" },
  };
  const join = { name: "join", taskReferenceName: "join", type: "JOIN" };
  const input = { tasks: Array.from({ length: 1_000 }, (_, at) => ({ name: "work", taskReferenceName: `t${at}`, type: "SIMPLE" })) };

  /** Resolves the template, and does its long work. Returns the result, and the number of slices of each work. */
  function resolved(plan: Plan, part: "grows" | "input") {
    const made = new Map<string, Json>();
    const slices: number[] = [];
    let documents = 0;
    const scope: Scope = scopeOf(
      input,
      {},
      {
        made: (key) => made.get(key),
        document: () => {
          documents++;
          return null;
        },
      },
    );
    const template = (plan.nodes[0] as InstantNode)[part] as InstantNode["input"];
    for (;;) {
      const result: Resolved = dialect.resolve(plan, template, scope);
      if (!("needs" in result) || result.work === undefined) return { result, slices, documents };
      const work = result.work.make();
      let count = 0;
      for (;;) {
        count++;
        const { done, value } = work.next();
        if (!done) continue;
        made.set(result.work.key, value);
        break;
      }
      slices.push(count);
    }
  }

  const grownOf = (result: Resolved) => ("value" in result ? (result.value as unknown as Grown) : undefined);

  it("is read and completed in slices", () => {
    const { result, slices } = resolved(planOf([fork, join]), "grows");
    expect(grownOf(result)?.own).toBe(true);
    expect(slices).toHaveLength(3);
    for (const count of slices) expect(count).toBeGreaterThanOrEqual(1_000 / sliceItems);
  });

  it("is not read again once its definition has grown", () => {
    const first = grownOf(resolved(planOf([fork, join]), "grows").result);
    const plan = dialect.compile(first?.source ?? "");
    expect(growthOf(plan)).toHaveLength(1);
    expect(resolved(plan, "grows")).toEqual({ result: { value: null }, slices: [], documents: 0 });
    const shown = resolved(plan, "input");
    expect(shown).toMatchObject({ slices: [], documents: 0 });
    expect(("value" in shown.result ? (shown.result.value as JsonObject) : {}).forkedTasks).toHaveLength(1_000);
  });
});

describe("a loop that has ended after a thousand iterations", () => {
  const last = 1_000;
  const work = { name: "work", taskReferenceName: "work" };
  const task = { name: "loop", taskReferenceName: "loop", type: "DO_WHILE", loopCondition: "true", loopOver: [work] };

  it("finds its last iteration with few records", () => {
    const plan = planOf([task], [{ loop: "loop", upTo: 1_500 }]);
    const loop = loopsOf(plan).named("loop") as Loop;
    const records = new Map<number, TaskRow | null>();
    const state = (node: number): TaskRow | null => {
      const turn = loop.turns.indexOf(node);
      const isThere = turn >= 0 ? turn <= last : loop.ends.indexOf(node) === last;
      return isThere ? ({ state: "done", input: "{}", output: "{}" } as TaskRow) : null;
    };
    const read = { records: 0 };
    for (;;) {
      const scope = scopeOf({}, {}, { record: (node) => records.get(node), output: () => ({}) });
      const result = dialect.resolve(plan, (plan.nodes[loop.at] as JoinNode).output, scope);
      if ("needs" in result) {
        for (const node of result.records ?? []) records.set(node, state(node));
        read.records += result.records?.length ?? 0;
        expect(result.records?.length).toBe(1);
        continue;
      }
      expect(result).toMatchObject({ value: { iteration: last } });
      break;
    }
    expect(read.records).toBeLessThanOrEqual(Math.ceil(Math.log2(1_500)) + 1);
  });

  it("has its plan compiled in turns, although its source is short", async () => {
    const parsed = parseWorkflowDef({ name: "w", tasks: [task] }, "w");
    const definition = "value" in parsed ? parsed.value : undefined;
    const source = JSON.stringify({ ...definition, grown: [{ loop: "loop", upTo: 1_000 }] });
    const slices = new Slices();
    const brain = brainOf(new Map([[dialect.name, dialect]]), { slices, reserved: new ReservedLanes([]) });
    await brain.planInTurns({ id: "d", name: "w", version: 1, dialect: dialect.name, source, createdAt: 0 });
    expect(slices.total).toBeGreaterThanOrEqual(5 * turnRows);
  });
});
