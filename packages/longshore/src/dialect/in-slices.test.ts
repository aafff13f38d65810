import { describe, expect, it } from "vitest";
import { mockRouter } from "../../test/support/flow-world.ts";
import type { Dialect } from "../run/dialect.ts";
import { sliceItems } from "../sliced.ts";
import { codeDialect } from "./code/dialect.ts";
import { conductorDialect } from "./conductor/dialect.ts";
import { flowkitDialect } from "./flowkit/dialect.ts";
import { stepflowDialect } from "./stepflow/dialect.ts";
import { workflowGraphDialect } from "./workflow-graph/compile.ts";
import { encodeSource, plainJob } from "./workflow-graph/source.ts";

const many = 3_000;
const numbers = Array.from({ length: many }, (_, at) => at);
const before = (at: number, name: string) => (at === 0 ? [] : [`${name}${at - 1}`]);
const task = (at: number) => ({ name: "t", taskReferenceName: `r${at}`, type: "SIMPLE", inputParameters: { a: "${workflow.input.x}" } });
const workflow = { name: "w", version: 1, schemaVersion: 2, outputParameters: {} };
const forkTasks = numbers.map((at) => [task(at)]);
const decisionCases = Object.fromEntries(numbers.map((at) => [`c${at}`, [task(at)]]));
const choice = { name: "s", taskReferenceName: "s", type: "SWITCH", evaluatorType: "value-param", expression: "x", inputParameters: {} };

const sources: [what: string, dialect: Dialect, source: unknown][] = [
  ["a chain of Conductor", conductorDialect(), { ...workflow, tasks: numbers.map(task) }],
  [
    "a fork of Conductor",
    conductorDialect(),
    {
      ...workflow,
      tasks: [
        { name: "f", taskReferenceName: "f", type: "FORK_JOIN", inputParameters: {}, forkTasks },
        { name: "j", taskReferenceName: "j", type: "JOIN", inputParameters: {}, joinOn: numbers.map((at) => `r${at}`) },
      ],
    },
  ],
  ["a switch of Conductor", conductorDialect(), { ...workflow, tasks: [{ ...choice, decisionCases }] }],
  [
    "a flow of Stepflow",
    stepflowDialect(mockRouter),
    {
      steps: numbers.map((at) => ({ id: `s${at}`, component: "/c", input: at === 0 ? {} : { $step: `s${at - 1}` } })),
      output: { $step: `s${many - 1}` },
    },
  ],
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
  ["a graph of FlowKit", flowkitDialect(), { nodes: numbers.map((at) => ({ node_id: `n${at}`, type: "t", depends_on: before(at, "n") })) }],
];

describe("a large definition", () => {
  it.each(sources)("is compiled in slices, to the same plan: %s", (_, dialect, source) => {
    const text = JSON.stringify(source);
    const work = dialect.compileInSlices!(text);
    let slices = 0;
    let step = work.next();
    for (; !step.done; step = work.next()) slices++;
    // Its steps are walked over at least three times: to make nodes, to join them, and to find who follows them.
    expect(slices).toBeGreaterThanOrEqual((3 * many) / sliceItems - 3);
    const { nodes, dependents } = dialect.compile(text);
    expect(step.value.nodes).toEqual(nodes);
    expect(step.value.dependents).toEqual(dependents);
    expect(nodes.length).toBeGreaterThanOrEqual(many);
  });
});
