// Tasks of workers, and every other operator that our server supports, each in the smallest run that shows it.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { define, defined, done, fork, join, step, TYPE } from "../operator-steps.ts";
import { complete, fail, get, operator, poll, post, quick, reaches, run, runUntil, simple, start, taskDefs } from "../steps.ts";

export const simpleTask: Chapter = {
  name: "operator-simple",
  steps: [
    taskDefs("define the task", quick(TYPE, { inputTemplate: { a: 1, b: "template" } })),
    defined("op_simple", {
      ...define(
        step("one", { id: "${CPEWF_TASK_ID}", a: null, text: "hello ${workflow.input.who}", nothing: null }),
        step("two", { from: "${one.output.x}", all: "${one.output}", a: 2 }),
      ),
      outputParameters: { x: "${one.output.x}", y: "${two.output.y}", id: "${workflow.workflowId}" },
    }),
    start("start", { name: "op_simple", input: { who: "Ann" } }),
    poll("poll one", TYPE),
    complete("complete one", { x: 7 }),
    runUntil("between", /"referenceTaskName":"two"/),
    poll("poll two", TYPE),
    complete("complete two", { y: "last" }),
    reaches("ends", "COMPLETED"),
    run("the run"),
    defined("op_last_output", define(step("one"), step("two"))),
    start("start without output parameters", { name: "op_last_output" }),
    done("one again", "one", { x: 1 }),
    done("two again", "two", { y: 2 }),
    reaches("ends too", "COMPLETED"),
    get("output of the last task", "/workflow/{{wf}}?includeTasks=false"),
    defined("op_delay", define(step("one", {}, { startDelay: 1 }))),
    start("start with a delay", { name: "op_delay" }),
    run("the delayed task"),
    get("is not given out yet", `/tasks/poll/${TYPE}`),
    poll("is given out later", TYPE),
  ],
};

const sub = (more: Record<string, unknown> = {}) =>
  operator("SUB_WORKFLOW", "sub", {
    inputParameters: { k: "${workflow.input.k}" },
    subWorkflowParam: { name: "op_child", version: 1 },
    ...more,
  });
const childOf = (name: string): Step =>
  get(name, "/workflow/{{wf}}", { until: /"subWorkflowId":"[^"]+"/, keep: { child: "tasks.0.subWorkflowId" } });

export const subWorkflows: Chapter = {
  name: "operator-sub-workflow",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("op_child", { ...define(step("inner", { k: "${workflow.input.k}" })), outputParameters: { got: "${inner.output.x}" } }),
    defined("op_parent", define(sub(), step("after", { got: "${sub.output.got}" }))),
    start("start", { name: "op_parent", input: { k: 5 }, correlationId: "c5", priority: 4 }),
    childOf("the child has begun"),
    runUntil("the child", /"referenceTaskName":"inner"/, "child"),
    post("inside the child", "/tasks/{{child}}/inner/COMPLETED", { x: 9 }),
    reaches("the child ends", "COMPLETED", "child"),
    runUntil("after the child", /"referenceTaskName":"after"/),
    done("complete after the child", "after"),
    reaches("ends", "COMPLETED"),
    run("the run"),
    start("start to fail", { name: "op_parent", input: { k: 6 } }),
    childOf("the child to fail has begun"),
    runUntil("the failing child's task", /"referenceTaskName":"inner"/, "child"),
    post("fail in the child", "/tasks/{{child}}/inner/FAILED_WITH_TERMINAL_ERROR", { x: 0 }),
    reaches("fails", "FAILED"),
    run("the failed run"),
    run("the failed child", "child"),
    start("start to terminate the child", { name: "op_parent", input: { k: 7 } }),
    childOf("the child to terminate has begun"),
    runUntil("the terminated child's task", /"referenceTaskName":"inner"/, "child"),
    { ...get("terminate the child", "/workflow/{{child}}?reason=enough"), method: "DELETE" },
    reaches("is terminated", "TERMINATED"),
    run("the terminated run"),
    start("start to terminate the parent", { name: "op_parent", input: { k: 8 } }),
    childOf("the child of the terminated has begun"),
    runUntil("the task of the terminated child", /"referenceTaskName":"inner"/, "child"),
    { ...get("terminate the parent", "/workflow/{{wf}}?reason=enough"), method: "DELETE" },
    run("the terminated child", "child"),
    defined(
      "op_parent_inline",
      define(
        sub({ subWorkflowParam: { name: "op_inline", version: 1, workflowDefinition: { ...define(step("inner")), name: "op_inline" } } }),
      ),
    ),
    start("start with an inline child", { name: "op_parent_inline", input: { k: 1 } }),
    childOf("the inline child has begun"),
    runUntil("the inline child", /"referenceTaskName":"inner"/, "child"),
    defined("op_parent_latest", define(sub({ subWorkflowParam: { name: "op_child" } }))),
    start("start with the latest version", { name: "op_parent_latest", input: { k: 1 } }),
    childOf("the latest child has begun"),
    defined("op_parent_missing", define(sub({ subWorkflowParam: { name: "op_no_such_child", version: 1 } }))),
    start("start with a child that does not exist", { name: "op_parent_missing" }),
    reaches("ends for want of a child", "FAILED"),
    run("a child that does not exist"),
  ],
};

export const terminates: Chapter = {
  name: "operator-terminate",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined(
      "op_end",
      define(
        operator("TERMINATE", "end", { inputParameters: { terminationStatus: "COMPLETED", workflowOutput: { r: "${workflow.input.r}" } } }),
        step("never"),
      ),
    ),
    start("completed", { name: "op_end", input: { r: 1 } }),
    run("completed, the run"),
    defined(
      "op_end_failed",
      define(
        operator("TERMINATE", "end", {
          inputParameters: { terminationStatus: "FAILED", terminationReason: "because", workflowOutput: "plain" },
        }),
      ),
    ),
    start("failed", { name: "op_end_failed" }),
    run("failed, the run"),
    defined("op_end_terminated", define(operator("TERMINATE", "end", { inputParameters: { terminationStatus: "TERMINATED" } }))),
    start("terminated", { name: "op_end_terminated" }),
    run("terminated, the run"),
    defined(
      "op_end_branch",
      define(
        fork([[operator("TERMINATE", "end", { inputParameters: { terminationStatus: "COMPLETED" } })], [step("other")]]),
        join(["other"]),
      ),
    ),
    start("in a branch", { name: "op_end_branch" }),
    run("in a branch, the run"),
  ],
};

export const variables: Chapter = {
  name: "operator-set-variable",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("op_variables", {
      ...define(
        operator("SET_VARIABLE", "set", { inputParameters: { a: "${workflow.input.a}", list: [1, "${workflow.input.a}"], gone: null } }),
        operator("SET_VARIABLE", "set_again", { inputParameters: { a: "${workflow.variables.a}!" } }),
        step("one", { a: "${workflow.variables.a}", initial: "${workflow.variables.initial}" }),
      ),
      variables: { initial: "yes" },
    }),
    start("start", { name: "op_variables", input: { a: "x" } }),
    run("the run"),
    get("the status", "/workflow/{{wf}}/status?includeVariables=true"),
  ],
};

export const waits: Chapter = {
  name: "operator-wait-human-noop",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("op_wait", define(operator("WAIT", "wait", { inputParameters: { duration: "1 seconds" } }), step("after"))),
    start("wait a second", { name: "op_wait" }),
    run("waiting"),
    runUntil("waited", /"referenceTaskName":"after"/),
    defined("op_wait_until", define(operator("WAIT", "wait", { inputParameters: { until: "2020-01-01 00:00 GMT" } }), step("after"))),
    start("wait until the past", { name: "op_wait_until" }),
    runUntil("not waited", /"referenceTaskName":"after"/),
    defined(
      "op_wait_signal",
      define(operator("WAIT", "wait", { inputParameters: { note: "${workflow.input.note}" } }), step("after", { got: "${wait.output}" })),
    ),
    start("wait for a signal", { name: "op_wait_signal", input: { note: "n" } }),
    runUntil("waiting for the signal", /"taskType":"WAIT","status":"IN_PROGRESS"/),
    post("the signal", "/tasks/{{wf}}/wait/COMPLETED", { s: 1 }),
    runUntil("signalled", /"referenceTaskName":"after"/),
    start("wait to fail", { name: "op_wait_signal", input: { note: "n" } }),
    runUntil("waiting to fail", /"taskType":"WAIT","status":"IN_PROGRESS"/),
    post("the wait fails", "/tasks/{{wf}}/wait/FAILED", { s: 0 }),
    reaches("wait failed", "FAILED"),
    defined("op_wait_expression", define(operator("WAIT", "wait", { inputParameters: { duration: "${workflow.input.duration}" } }))),
    start("a wrong duration at run time", { name: "op_wait_expression", input: { duration: "soon" } }),
    defined("op_human", define(operator("HUMAN", "human", { inputParameters: { ask: "${workflow.input.ask}" } }), step("after"))),
    start("ask somebody", { name: "op_human", input: { ask: "?" } }),
    run("asking"),
    post("the answer", "/tasks/{{wf}}/human/COMPLETED", { answer: "!" }),
    runUntil("answered", /"referenceTaskName":"after"/),
    defined("op_noop", define(operator("NOOP", "noop", { inputParameters: { x: 1 } }), step("after"))),
    start("nothing to do", { name: "op_noop" }),
    run("nothing done"),
  ],
};

export const failures: Chapter = {
  name: "failures",
  steps: [
    taskDefs(
      "define the tasks",
      quick(TYPE),
      quick("op_twice", { retryCount: 1 }),
      quick("op_fixed", { retryCount: 3, retryDelaySeconds: 2 }),
      quick("op_linear", {
        retryCount: 3,
        retryDelaySeconds: 2,
        retryLogic: "LINEAR_BACKOFF",
        backoffScaleFactor: 2,
        maxRetryDelaySeconds: 5,
      }),
      quick("op_exponential", { retryCount: 3, retryDelaySeconds: 2, retryLogic: "EXPONENTIAL_BACKOFF", maxRetryDelaySeconds: 3 }),
    ),
    defined("op_optional", define(simple("op_twice", "one", {}, { optional: true }), step("after"))),
    start("optional", { name: "op_optional" }),
    poll("optional, first attempt", "op_twice"),
    fail("optional fails"),
    poll("optional, second attempt", "op_twice"),
    fail("optional fails again"),
    runUntil("optional goes on", /"referenceTaskName":"after"/),
    defined("op_permissive", define(simple("op_twice", "one", {}, { permissive: true, retryCount: 0 }), step("after"))),
    start("permissive", { name: "op_permissive" }),
    poll("permissive, the attempt", "op_twice"),
    fail("permissive fails"),
    runUntil("permissive goes on", /"referenceTaskName":"after"/),
    done("after the permissive", "after"),
    reaches("permissive ends", "FAILED"),
    run("permissive, the run"),
    ...["fixed", "linear", "exponential"].flatMap((logic): Step[] => [
      defined(`op_flow_${logic}`, define(simple(`op_${logic}`, "one"))),
      start(`${logic}`, { name: `op_flow_${logic}` }),
      poll(`${logic}, first attempt`, `op_${logic}`),
      fail(`${logic} fails`),
      runUntil(`${logic}, the delay`, /"retryCount":1,/),
      poll(`${logic}, second attempt`, `op_${logic}`),
      fail(`${logic} fails again`),
      runUntil(`${logic}, the second delay`, /"retryCount":2,/),
    ]),
    defined(
      "op_after_failure",
      define(simple("op_clean_task", "clean_up", { why: "${workflow.input.reason}", whom: "${workflow.input.workflowId}" })),
    ),
    defined("op_with_failure", { ...define(step("one")), failureWorkflow: "op_after_failure", outputParameters: { o: "${one.output.o}" } }),
    start("with a failure workflow", { name: "op_with_failure", input: { given: 1 }, correlationId: "cf" }),
    post("fails", "/tasks/{{wf}}/one/FAILED", { o: 1 }),
    runUntil("the failed run", /conductor.failure_workflow/),
    poll("the failure workflow's task", "op_clean_task"),
  ],
};
