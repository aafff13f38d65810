// FORK_JOIN_DYNAMIC in both forms.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { define, defined, done, join, step, TYPE } from "../operator-steps.ts";
import { operator, post, quick, reaches, runUntil, start, taskDefs } from "../steps.ts";

const pair = { dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" };
const forkOf = (more: Record<string, unknown>) => operator("FORK_JOIN_DYNAMIC", "fork", more);
const byPair = define(
  forkOf({ ...pair, inputParameters: { tasks: "${workflow.input.tasks}", inputs: "${workflow.input.inputs}" } }),
  join([]),
  step("after", { got: "${join.output}" }),
);

const begun = (name: string, of: string, input: Record<string, unknown>): Step[] => [
  start(`${name}, start`, { name: of, input }),
  runUntil(`${name}, the run`, /"taskType":"JOIN"|"status":"FAILED"/),
];

export const dynamicForks: Chapter = {
  name: "operator-dynamic-fork",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("df_pair", byPair),
    ...begun("two", "df_pair", { tasks: [step("one"), step("two", { own: 1 })], inputs: { one: { a: 1 }, two: { b: 2 } } }),
    done("the first of two", "one", { x: 1 }),
    done("the second of two", "two", { y: 2 }),
    runUntil("two, joined", /"referenceTaskName":"after"/),
    ...begun("none", "df_pair", { tasks: [], inputs: {} }),
    runUntil("none, joined", /"referenceTaskName":"after"/),
    ...begun("inline", "df_pair", {
      tasks: [operator("INLINE", "calc", { inputParameters: { expression: "$.n + 1" } })],
      inputs: { calc: { n: 1 } },
    }),
    runUntil("inline, joined", /"referenceTaskName":"after"/),
    ...begun("a failure", "df_pair", { tasks: [step("one"), step("two")], inputs: {} }),
    post("one fails", "/tasks/{{wf}}/one/FAILED", { why: 1 }),
    reaches("a failure ends", "FAILED"),
    ...begun("not a list", "df_pair", { tasks: "x", inputs: {} }),
    ...begun("not a map", "df_pair", { tasks: [step("one")], inputs: "x" }),
    ...begun("an optional one", "df_pair", { tasks: [step("one", {}, { optional: true })], inputs: {} }),
    post("the optional one fails", "/tasks/{{wf}}/one/FAILED", { why: 1 }),
    runUntil("an optional one, joined", /"referenceTaskName":"after"/),
    defined(
      "df_inputs",
      define(
        forkOf({ inputParameters: { forkTaskName: TYPE, forkTaskInputs: "${workflow.input.list}" } }),
        join([]),
        step("after", { got: "${join.output}" }),
      ),
    ),
    ...begun("inputs", "df_inputs", { list: [{ a: 1 }, 2, "three"] }),
    done("inputs, 0", `_${TYPE}_0`, { o: 0 }),
    done("inputs, 1", `_${TYPE}_1`, { o: 1 }),
    done("inputs, 2", `_${TYPE}_2`, { o: 2 }),
    runUntil("inputs, joined", /"referenceTaskName":"after"/),
    ...begun("no inputs", "df_inputs", { list: [] }),
    defined("df_child", define(step("inner", { all: "${workflow.input}" }))),
    defined(
      "df_children",
      define(forkOf({ inputParameters: { forkTaskWorkflow: "df_child", forkTaskInputs: [{ k: 1 }, { k: 2 }] } }), join([]), step("after")),
    ),
    start("children, start", { name: "df_children" }),
    // Each of the two children is named twice.
    runUntil("children, begun", /(?:"subWorkflowId":"[^"]+"[\s\S]*){4}/),
    defined("df_no_join", define(forkOf({ inputParameters: { forkTaskName: TYPE, forkTaskInputs: [1] } }), step("after"))),
    ...begun("without a JOIN", "df_no_join", {}),
    defined("df_nothing", define(forkOf({ inputParameters: {} }), join([]))),
  ],
};
