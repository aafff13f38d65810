import { describe, expect, it } from "vitest";
import { mockRouter } from "../../test/support/flow-world.ts";
import { type Sliced, sliceItems } from "../core/slices/slice-work.ts";
import type { Dialect } from "../engine/run/dialect.ts";
import { codeDialect } from "../protocols/longshore/dialect/dialect.ts";
import { conductorDialect } from "./conductor/dialect/dialect.ts";
import { valueExpressionsMax } from "./conductor/dialect/expression-count.ts";
import { parseInSlices, parseWorkflowDef } from "./conductor/dialect/workflow-def.ts";
import { checkedGraph, checkInSlices } from "./flowkit/dialect/check.ts";
import { flowkitDialect } from "./flowkit/dialect/dialect.ts";
import { diagnose, diagnoseInSlices } from "./stepflow/dialect/diagnose.ts";
import { stepflowDialect } from "./stepflow/dialect/dialect.ts";
import { decodeInSlices } from "./stepflow/dialect/source.ts";
import { workflowGraphDialect } from "./workflow-graph/dialect/compile.ts";
import { encodeSource, plainJob } from "./workflow-graph/dialect/source.ts";

const many = 3_000;
const numbers = Array.from({ length: many }, (_, at) => at);
const before = (at: number, name: string) => (at === 0 ? [] : [`${name}${at - 1}`]);
const task = (at: number) => ({ name: "t", taskReferenceName: `r${at}`, type: "SIMPLE", inputParameters: { a: "${workflow.input.x}" } });
const workflow = { name: "w", version: 1, schemaVersion: 2, inputParameters: [], inputTemplate: {}, outputParameters: {} };
const forkTasks = numbers.map((at) => [task(at)]);
const decisionCases = Object.fromEntries(numbers.map((at) => [`c${at}`, [task(at)]]));
const choice = { name: "s", taskReferenceName: "s", type: "SWITCH", evaluatorType: "value-param", expression: "x", inputParameters: {} };

const conductor: [what: string, source: object][] = [
  ["a chain", { ...workflow, tasks: numbers.map(task) }],
  [
    "a fork",
    {
      ...workflow,
      tasks: [
        { name: "f", taskReferenceName: "f", type: "FORK_JOIN", inputParameters: {}, forkTasks },
        { name: "j", taskReferenceName: "j", type: "JOIN", inputParameters: {}, joinOn: numbers.map((at) => `r${at}`) },
      ],
    },
  ],
  ["a switch", { ...workflow, tasks: [{ ...choice, decisionCases }] }],
];
const flow = {
  steps: numbers.map((at) => ({ id: `s${at}`, component: "/c", input: at === 0 ? {} : { $step: `s${at - 1}` } })),
  output: { $step: `s${many - 1}` },
};
const graph = { nodes: numbers.map((at) => ({ node_id: `n${at}`, type: "t", depends_on: before(at, "n") })) };

const sources: [what: string, dialect: Dialect, source: unknown][] = [
  ...conductor.map(([what, source]): [string, Dialect, unknown] => [`${what} of Conductor`, conductorDialect(), source]),
  ["a flow of Stepflow", stepflowDialect(mockRouter), flow],
  [
    "jobs of workflow-graph",
    workflowGraphDialect,
    JSON.parse(
      encodeSource({
        name: "n",
        trigger: "push",
        jobs: numbers.map((at) => ({ ...plainJob(`j${at}`, "true"), depends_on: before(at, "j") })),
      }),
    ),
  ],
  [
    "a workflow in code",
    codeDialect,
    { name: "w", steps: numbers.map((at) => ({ id: `s${at}`, task: "t", input: null, after: before(at, "s") })), output: null },
  ],
  ["a graph of FlowKit", flowkitDialect(), graph],
];

function slicesOf<Result>(work: Sliced<Result>): { slices: number; value: Result } {
  for (let slices = 0; ; slices++) {
    const { done, value } = work.next();
    if (done) return { slices, value };
  }
}

/** One walk over all steps. */
const walk = Math.floor(many / sliceItems) - 1;

describe("a large definition", () => {
  it.each(conductor)("of Conductor is read, checked and tried out in slices: %s", (_, source) => {
    const { slices, value } = slicesOf(parseInSlices(source, "p"));
    expect(value).toEqual(parseWorkflowDef(source, "p"));
    expect(value).toHaveProperty("value");
    expect(slices).toBeGreaterThanOrEqual(5 * walk);
  });

  it("of Conductor has a bounded number of expressions in one task", () => {
    const withExpressions = (count: number) => {
      const a = Array.from({ length: count }, () => "${workflow.input.x}");
      return parseWorkflowDef({ ...workflow, tasks: [{ ...task(0), inputParameters: { a } }] }, "p");
    };
    expect(withExpressions(valueExpressionsMax)).toHaveProperty("value");
    expect(withExpressions(valueExpressionsMax + 1)).toEqual({
      violations: [{ path: "p.tasks[0].inputParameters", message: "has more than 4000 expressions, which is the limit of one task" }],
    });
  });

  it("of Stepflow is read and diagnosed in slices", () => {
    const read = slicesOf(decodeInSlices(JSON.stringify(flow)));
    expect(read.slices).toBeGreaterThanOrEqual(walk);
    const found = slicesOf(diagnoseInSlices(read.value));
    expect(found.slices).toBeGreaterThanOrEqual(4 * walk);
    expect(found.value).toEqual(diagnose(read.value));
  });

  it("of FlowKit is read and checked in slices", () => {
    const { slices, value } = slicesOf(checkInSlices(graph, {}));
    expect(slices).toBeGreaterThanOrEqual(4 * walk);
    expect(value).toEqual(checkedGraph(graph));
  });

  it.each(sources)("is compiled in slices, to the same plan: %s", (_, dialect, source) => {
    const text = JSON.stringify(source);
    const { slices, value } = slicesOf(dialect.compileInSlices!(text));
    // Its steps are walked over at least three times: to make nodes, to join them, and to find which follow them.
    expect(slices).toBeGreaterThanOrEqual(3 * walk);
    const { nodes, dependents } = dialect.compile(text);
    expect(value.nodes).toEqual(nodes);
    expect(value.dependents).toEqual(dependents);
    expect(nodes.length).toBeGreaterThanOrEqual(many);
  });
});
