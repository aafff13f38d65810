// DO_WHILE in every form, alone and inside each other and inside forks.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { define, defined, done, fork, join, step, TYPE } from "../operator-steps.ts";
import { operator, post, quick, reaches, run, runUntil, start, taskDefs } from "../steps.ts";

const loop = (loopOver: unknown[], more: Record<string, unknown> = {}, ref = "loop") =>
  operator("DO_WHILE", ref, { loopCondition: `$.${ref}['iteration'] < 2`, loopOver, ...more });
const calc = (ref: string, expression: string, input: Record<string, unknown> = {}) =>
  operator("INLINE", ref, { inputParameters: { evaluatorType: "javascript", expression, ...input } });

/** A run that ends by itself. */
const alone = (name: string, tasks: unknown[], input: Record<string, unknown> = {}, status = "COMPLETED"): Step[] => [
  defined(`lo_${name}`, { ...define(...tasks), outputParameters: { loop: "${loop.output}", last: "${calc.output}" } }),
  start(`start ${name}`, { name: `lo_${name}`, input }),
  reaches(`${name} ends`, status),
  run(`${name}, the run`),
];

export const loops: Chapter = {
  name: "operator-do-while",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined(
      "lo_work",
      define(
        loop([step("body", { n: "${loop.output.iteration}", before: "${body.output.n}" })]),
        step("after", { got: "${body.output}", loop: "${loop.output}" }),
      ),
    ),
    start("start", { name: "lo_work" }),
    run("first iteration"),
    done("end of the first", "body__1", { n: 1 }),
    runUntil("second iteration", /"referenceTaskName":"body__2"/),
    done("end of the second", "body__2", { n: 2 }),
    runUntil("after the loop", /"referenceTaskName":"after"/),
    start("start to fail", { name: "lo_work" }),
    done("end before the failure", "body__1", { n: 1 }),
    runUntil("before the failure", /"referenceTaskName":"body__2"/),
    post("the body fails", "/tasks/{{wf}}/body__2/FAILED", { n: 2 }),
    reaches("the loop fails", "FAILED"),
    run("the failed loop"),
    ...alone("condition", [
      loop([calc("calc", "$.n * 2", { n: "${loop.output.iteration}" })], {
        loopCondition: "if ($.calc.result < $.limit) { true; } else { false; }",
        inputParameters: { limit: 6 },
      }),
    ]),
    ...alone("number", [loop([calc("calc", "1")], { loopCondition: "3 - $.loop.iteration" })]),
    ...alone("text_condition", [loop([calc("calc", "1")], { loopCondition: "'true'" })]),
    ...alone("keep", [
      loop([calc("calc", "$.n", { n: "${loop.output.iteration}" })], {
        loopCondition: "$.loop.iteration < 5",
        inputParameters: { keepLastN: 2 },
      }),
    ]),
    ...alone(
      "items",
      [
        loop([calc("calc", "$.item + ':' + $.at", { item: "${loop.output.loopItem}", at: "${loop.output.loopIndex}" })], {
          loopCondition: "",
          items: "${workflow.input.list}",
        }),
      ],
      { list: ["a", "b", "c"] },
    ),
    ...alone(
      "items_input",
      [
        loop([calc("calc", "$.item", { item: "${loop.output.loopItem}" })], {
          loopCondition: "",
          inputParameters: { _items: "${workflow.input.list}" },
        }),
      ],
      { list: [1, 2] },
    ),
    ...alone("items_none", [loop([calc("calc", "1")], { loopCondition: "", items: "${workflow.input.list}" })], { list: [] }),
    ...alone(
      "items_single",
      [loop([calc("calc", "$.item", { item: "${loop.output.loopItem}" })], { loopCondition: "", items: "${workflow.input.list}" })],
      { list: "only" },
    ),
    ...alone(
      "items_condition",
      [
        loop([calc("calc", "$.item", { item: "${loop.output.loopItem}" })], {
          loopCondition: "$.loopItem < 2",
          items: "${workflow.input.list}",
        }),
      ],
      { list: [1, 2, 3] },
    ),
    ...alone("wrong_condition", [loop([calc("calc", "1")], { loopCondition: "missing.thing" })], {}, "FAILED"),
    ...alone("several", [
      loop([calc("one", "$.n + 1", { n: "${loop.output.iteration}" }), calc("calc", "$.one * 10", { one: "${one.output.result}" })]),
    ]),
    ...alone("switch", [
      loop([
        operator("SWITCH", "sw", {
          evaluatorType: "javascript",
          expression: "$.n == 1 ? 'first' : 'other'",
          inputParameters: { n: "${loop.output.iteration}" },
          decisionCases: { first: [calc("calc", "'first'")] },
          defaultCase: [calc("calc_other", "'other'")],
        }),
      ]),
    ]),
    ...alone("variable", [
      loop([
        operator("SET_VARIABLE", "set", { inputParameters: { n: "${loop.output.iteration}" } }),
        calc("calc", "$.n", { n: "${workflow.variables.n}" }),
      ]),
    ]),
    ...alone("terminate", [
      loop([
        calc("calc", "1"),
        operator("TERMINATE", "end", { inputParameters: { terminationStatus: "COMPLETED", workflowOutput: { by: "the body" } } }),
      ]),
    ]),
  ],
};

const forked = (ref: string, left: unknown[], right: unknown[], joinOn: string[]) => [
  { ...fork([left, right]), name: ref, taskReferenceName: ref },
  { ...join(joinOn), name: `${ref}_join`, taskReferenceName: `${ref}_join` },
];

export const nestedLoops: Chapter = {
  name: "operator-nested-loops",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    ...alone("fork_in_loop", [
      loop(forked("fork", [calc("left", "'l' + $.n", { n: "${loop.output.iteration}" })], [calc("calc", "'r'")], ["left", "calc"])),
    ]),
    ...alone(
      "loop_in_fork",
      forked("fork", [loop([calc("calc", "$.n", { n: "${loop.output.iteration}" })])], [calc("other", "1")], ["loop", "other"]),
    ),
    ...alone("loop_in_switch", [
      operator("SWITCH", "sw", {
        evaluatorType: "value-param",
        expression: "w",
        inputParameters: { w: "a" },
        decisionCases: { a: [loop([calc("calc", "1")])] },
      }),
    ]),
    defined(
      "lo_fork_work",
      define(loop(forked("fork", [step("left")], [step("right")], ["left", "right"])), step("after", { got: "${fork_join.output}" })),
    ),
    start("fork of work", { name: "lo_fork_work" }),
    done("left 1", "left__1", { l: 1 }),
    done("right 1", "right__1", { r: 1 }),
    runUntil("second fork", /"referenceTaskName":"right__2"/),
    done("left 2", "left__2", { l: 2 }),
    done("right 2", "right__2", { r: 2 }),
    runUntil("after the forks", /"referenceTaskName":"after"/),
    defined("lo_nested", {
      ...define(
        loop([loop([calc("calc", "$.o", { o: "${loop.output.iteration}" })], { loopCondition: "false" }, "inner")], {
          loopCondition: "false",
        }),
      ),
      outputParameters: { loop: "${loop.output}", last: "${calc.output}" },
    }),
  ],
};
