// Joins that choose: EXCLUSIVE_JOIN, and JOIN with an expression.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { define, defined, done, fork, join, step, TYPE } from "../operator-steps.ts";
import { operator, post, quick, reaches, run, runUntil, start, taskDefs } from "../steps.ts";

const choice = (ref: string, decisionCases: Record<string, unknown[]>) =>
  operator("SWITCH", ref, {
    evaluatorType: "value-param",
    expression: ref,
    inputParameters: { [ref]: `\${workflow.input.${ref}}` },
    decisionCases,
  });

const exclusive = (joinOn: string[], defaultExclusiveJoinTask?: string[], more: Record<string, unknown> = {}) =>
  operator("EXCLUSIVE_JOIN", "one_of", {
    joinOn,
    ...(defaultExclusiveJoinTask === undefined ? {} : { defaultExclusiveJoinTask }),
    ...more,
  });

const exclusiveRun = (name: string, of: string, which: string, ref: string, more: Step[] = []): Step[] => [
  start(`${name}, start`, { name: of, input: { which } }),
  run(`${name}, waiting`),
  done(`${name}, the task`, ref, { from: ref }),
  runUntil(`${name}, joined`, /"referenceTaskName":"after"/),
  ...more,
];

export const exclusiveJoins: Chapter = {
  name: "operator-exclusive-join",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined(
      "jo_exclusive",
      define(
        choice("which", { a: [step("in_a")], b: [step("in_b")] }),
        exclusive(["in_a", "in_b"]),
        step("after", { got: "${one_of.output}" }),
      ),
    ),
    ...exclusiveRun("the first", "jo_exclusive", "a", "in_a", [
      done("after the first", "after"),
      reaches("the first ends", "COMPLETED"),
      run("the first, ended"),
    ]),
    ...exclusiveRun("the second", "jo_exclusive", "b", "in_b"),
    start("neither", { name: "jo_exclusive", input: { which: "z" } }),
    run("neither, the run"),
    start("a failure", { name: "jo_exclusive", input: { which: "a" } }),
    post("the task fails", "/tasks/{{wf}}/in_a/FAILED", { why: 1 }),
    reaches("a failure ends", "FAILED"),
    run("a failure, the run"),
    defined(
      "jo_default",
      define(
        step("before"),
        choice("which", { a: [step("in_a")], b: [step("in_b")] }),
        exclusive(["in_a", "in_b"], ["before"]),
        step("after", { got: "${one_of.output}" }),
      ),
    ),
    start("the default, start", { name: "jo_default", input: { which: "z" } }),
    done("the default, before", "before", { from: "before" }),
    runUntil("the default, joined", /"referenceTaskName":"after"/),
    start("not the default, start", { name: "jo_default", input: { which: "b" } }),
    done("not the default, before", "before", { from: "before" }),
    runUntil("not the default, in the case", /"referenceTaskName":"in_b"/),
    done("not the default, the task", "in_b", { from: "in_b" }),
    runUntil("not the default, joined", /"referenceTaskName":"after"/),
    defined("jo_exclusive_none", define(step("before"), exclusive([]), step("after"))),
    start("without names", { name: "jo_exclusive_none" }),
    done("without names, before", "before"),
    run("without names, the run"),
    defined("jo_exclusive_unknown", define(step("before"), exclusive(["nobody"]), step("after"))),
    defined(
      "jo_exclusive_optional",
      define(
        choice("which", { a: [step("in_a", {}, { optional: true })] }),
        exclusive(["in_a"]),
        step("after", { got: "${one_of.output}" }),
      ),
    ),
    start("an optional failure", { name: "jo_exclusive_optional", input: { which: "a" } }),
    post("the optional task fails", "/tasks/{{wf}}/in_a/FAILED", { why: 1 }),
    runUntil("an optional failure, the run", /"status":"FAILED"|"referenceTaskName":"after"/),
  ],
};

const forked = (more: Record<string, unknown>) =>
  define(fork([[step("left")], [step("right")]]), join(["left", "right"], more), step("after", { got: "${join.output}" }));

export const scriptedJoins: Chapter = {
  name: "operator-join-script",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("jo_any", forked({ evaluatorType: "js", expression: "$.left != null || $.right != null" })),
    start("any", { name: "jo_any" }),
    run("any, waiting"),
    done("any, left", "left", { l: 1 }),
    runUntil("any, after left", /"referenceTaskName":"left","retryCount":0,"seq":2|"status":"COMPLETED"/),
    defined("jo_graal", forked({ evaluatorType: "graaljs", expression: "(function () { return $.joinOn.length == 2; })();" })),
    start("graaljs", { name: "jo_graal" }),
    run("graaljs, waiting"),
    defined("jo_javascript", forked({ evaluatorType: "javascript", expression: "true" })),
    start("javascript", { name: "jo_javascript" }),
    run("javascript, waiting"),
    defined("jo_unknown", forked({ evaluatorType: "cobol", expression: "true" })),
    start("unknown", { name: "jo_unknown" }),
    run("unknown, waiting"),
    defined("jo_sync", forked({ joinMode: "SYNC" })),
    start("sync", { name: "jo_sync" }),
    run("sync, waiting"),
    done("sync, left", "left", { l: 1 }),
    done("sync, right", "right", { r: 1 }),
    runUntil("sync, joined", /"referenceTaskName":"after"/),
    defined("jo_async", forked({ joinMode: "ASYNC" })),
    start("async", { name: "jo_async" }),
    done("async, left", "left", { l: 1 }),
    done("async, right", "right", { r: 1 }),
    runUntil("async, joined", /"referenceTaskName":"after"/),
    defined("jo_mode_wrong", forked({ joinMode: "SOMETIMES" })),
  ],
};
