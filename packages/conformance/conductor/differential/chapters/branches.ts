// Operators that choose or split the path of a run: tasks whose type is only known when they start, switches, forks and joins.
import type { Chapter } from "../../../src/differential/script.ts";
import { define, defined, done, fork, join, step, TYPE } from "../operator-steps.ts";
import { operator, post, quick, reaches, run, runUntil, start, taskDefs } from "../steps.ts";

export const dynamic: Chapter = {
  name: "operator-dynamic",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined(
      "op_dynamic",
      define(operator("DYNAMIC", "dyn", { dynamicTaskNameParam: "which", inputParameters: { which: "${workflow.input.which}", k: 1 } })),
    ),
    start("start", { name: "op_dynamic", input: { which: TYPE } }),
    done("the chosen one", "dyn", { x: 1 }),
    reaches("ends", "COMPLETED"),
    run("the run"),
    start("start with an unknown task", { name: "op_dynamic", input: { which: "never_defined" } }),
    run("unknown task"),
    start("start with nothing", { name: "op_dynamic", input: {} }),
    run("no task"),
    defined(
      "op_dynamic_operator",
      define(
        operator("DYNAMIC", "dyn", {
          dynamicTaskNameParam: "which",
          inputParameters: { which: "${workflow.input.which}", terminationStatus: "FAILED", terminationReason: "because" },
        }),
        step("after"),
      ),
    ),
    ...["NOOP", "SWITCH", "SET_VARIABLE", "TERMINATE", "HUMAN"].flatMap((which) => [
      start(`start with ${which}`, { name: "op_dynamic_operator", input: { which } }),
      runUntil(`${which}, the run`, /"referenceTaskName":"after"|"status":"FAILED"|"taskType":"HUMAN","status":"IN_PROGRESS"/),
    ]),
  ],
};

const switchOn = (more: Record<string, unknown> = {}) =>
  operator("SWITCH", "sw", {
    evaluatorType: "value-param",
    expression: "which",
    inputParameters: { which: "${workflow.input.which}" },
    decisionCases: { a: [step("in_a"), step("in_a_too")], b: [step("in_b")], none: [] },
    ...more,
  });

export const switches: Chapter = {
  name: "operator-switch",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("op_switch", define(switchOn({ defaultCase: [step("in_default")] }), step("after"))),
    start("case a", { name: "op_switch", input: { which: "a" } }),
    run("case a, the run"),
    done("in a", "in_a"),
    done("in a too", "in_a_too"),
    done("after", "after"),
    reaches("case a ends", "COMPLETED"),
    run("case a ended"),
    start("no such case", { name: "op_switch", input: { which: "z" } }),
    run("no such case, the run"),
    start("an empty case", { name: "op_switch", input: { which: "none" } }),
    run("an empty case, the run"),
    start("a number", { name: "op_switch", input: { which: 5 } }),
    run("a number, the run"),
    start("nothing", { name: "op_switch", input: {} }),
    run("nothing, the run"),
    start("a list", { name: "op_switch", input: { which: ["a"] } }),
    run("a list, the run"),
    defined("op_switch_bare", define(switchOn(), step("after"))),
    start("no such case and no default", { name: "op_switch_bare", input: { which: "z" } }),
    run("no such case and no default, the run"),
    defined("op_switch_end", define(switchOn())),
    start("nothing to do at all", { name: "op_switch_end", input: { which: "z" } }),
    run("nothing to do at all, the run"),
    defined(
      "op_switch_case",
      define(switchOn({ inputParameters: { which: "literal" }, decisionCases: { literal: [step("in_literal")] } })),
    ),
    start("a literal", { name: "op_switch_case" }),
    run("a literal, the run"),
    defined("op_switch_other_key", define(switchOn({ expression: "missing" }))),
    start("an expression that names no input", { name: "op_switch_other_key", input: { which: "a" } }),
    run("an expression that names no input, the run"),
  ],
};

export const forks: Chapter = {
  name: "operator-fork-join",
  steps: [
    taskDefs("define the task", quick(TYPE), quick("op_retried", { retryCount: 1 })),
    defined(
      "op_fork",
      define(
        fork([[step("left"), step("left_too")], [step("right")]]),
        join(["left_too", "right"]),
        step("after", { joined: "${join.output}" }),
      ),
    ),
    start("start", { name: "op_fork" }),
    runUntil("branches", /"referenceTaskName":"join"/),
    done("left", "left", { l: 1 }),
    done("right", "right", { r: 1 }),
    runUntil("the right one is done", /"referenceTaskName":"left_too"/),
    done("left too", "left_too", {}),
    runUntil("joined", /"referenceTaskName":"after"/),
    done("after", "after", { done: true }),
    reaches("ends", "COMPLETED"),
    run("the run"),
    start("start to fail", { name: "op_fork" }),
    runUntil("both branches wait", /"referenceTaskName":"join"/),
    post("left fails", "/tasks/{{wf}}/left/FAILED_WITH_TERMINAL_ERROR", { l: 0 }),
    reaches("fails", "FAILED"),
    run("the failed run"),
    post("retry", "/workflow/{{wf}}/retry"),
    run("retried"),
    defined("op_fork_some", define(fork([[step("left")], [step("right")]]), join(["left"]), step("after"))),
    start("join on some", { name: "op_fork_some" }),
    done("only left", "left", { l: 1 }),
    runUntil("joined without right", /"referenceTaskName":"after"/),
    done("after without right", "after", {}),
    run("right still runs"),
    done("right at last", "right", {}),
    reaches("some ends", "COMPLETED"),
    defined("op_fork_none", define(fork([[step("left")]]), join([]), step("after"))),
    start("join on nothing", { name: "op_fork_none" }),
    runUntil("joined at once", /"referenceTaskName":"after"/),
    defined(
      "op_fork_optional",
      define(fork([[step("left", {}, { optional: true })], [step("right")]]), join(["left", "right"]), step("after")),
    ),
    start("optional branch", { name: "op_fork_optional" }),
    post("left fails, optional", "/tasks/{{wf}}/left/FAILED_WITH_TERMINAL_ERROR", { l: 0 }),
    done("right goes on", "right", { r: 1 }),
    runUntil("joined with errors", /"referenceTaskName":"after"/),
    defined(
      "op_fork_permissive",
      define(fork([[step("left", {}, { permissive: true })], [step("right")]]), join(["left", "right"]), step("after")),
    ),
    start("permissive branch", { name: "op_fork_permissive" }),
    post("left fails, permissive", "/tasks/{{wf}}/left/FAILED_WITH_TERMINAL_ERROR", { l: 0 }),
    run("right may go on"),
    done("right ends", "right", { r: 1 }),
    reaches("permissive ends", "FAILED"),
    run("permissive, the run"),
    defined(
      "op_fork_nested",
      define(
        fork([
          [
            operator("FORK_JOIN", "inner", { forkTasks: [[step("x")], [step("y")]] }),
            operator("JOIN", "inner_join", { joinOn: ["x", "y"] }),
          ],
          [step("z")],
        ]),
        join(["inner_join", "z"]),
      ),
    ),
    start("nested", { name: "op_fork_nested" }),
    runUntil("nested branches", /"referenceTaskName":"join"/),
    done("x", "x", { x: 1 }),
    done("y", "y", { y: 1 }),
    done("z", "z", { z: 1 }),
    reaches("nested ends", "COMPLETED"),
    run("nested, the run"),
    defined("op_fork_alone", define(fork([[step("left")]]), step("after"))),
    start("a fork without a join", { name: "op_fork_alone" }),
    run("a fork without a join, the run"),
  ],
};
