// Events: tasks that send them, handlers that do something with them, and tasks that start runs of other workflows.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { define, defined, done, step, TYPE } from "../operator-steps.ts";
import { del, get, operator, post, put, quick, reaches, run, runUntil, start, taskDefs } from "../steps.ts";

const event = (ref: string, sink: unknown, more: Record<string, unknown> = {}) =>
  operator("EVENT", ref, { sink, inputParameters: { order: "${workflow.input.order}", fixed: 1 }, ...more });

/** The step and its run: a node of a cluster may show the end of the step first. */
const hasFailed = /"status":"FAILED"[\s\S]*"status":"FAILED"/;

export const eventTasks: Chapter = {
  name: "operator-event",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("ev_conductor", define(event("tell", "conductor"), step("after", { got: "${tell.output}" }))),
    start("to conductor", { name: "ev_conductor", input: { order: { id: 7 } }, correlationId: "c-1" }),
    runUntil("to conductor, sent", /"referenceTaskName":"after"/),
    defined("ev_named", define(event("tell", "conductor:orders"), step("after", { got: "${tell.output.event_produced}" }))),
    start("to a name", { name: "ev_named", input: { order: "x" } }),
    runUntil("to a name, sent", /"referenceTaskName":"after"/),
    defined("ev_expression", define(event("tell", "conductor:${workflow.input.to}"), step("after"))),
    start("to an expression", { name: "ev_expression", input: { to: "there" } }),
    runUntil("to an expression, sent", /"referenceTaskName":"after"|"status":"FAILED"/),
    defined(
      "ev_input_sink",
      define(operator("EVENT", "tell", { sink: "conductor:one", inputParameters: { sink: "conductor:two" } }), step("after")),
    ),
    start("a sink in the input", { name: "ev_input_sink" }),
    runUntil("a sink in the input, sent", /"referenceTaskName":"after"|"status":"FAILED"/),
    defined("ev_unknown", define(event("tell", "pigeon:coop"), step("after"))),
    start("to an unknown kind", { name: "ev_unknown" }),
    runUntil("to an unknown kind, failed", hasFailed),
    defined("ev_bare", define(event("tell", "orders"), step("after"))),
    start("to a name without a kind", { name: "ev_bare" }),
    runUntil("to a name without a kind, failed", hasFailed),
    defined("ev_async", define(event("tell", "conductor", { asyncComplete: true }), step("after", { got: "${tell.output}" }))),
    start("asynchronously", { name: "ev_async", input: { order: 1 } }),
    runUntil("asynchronously, sent", /"event_produced"/),
    done("asynchronously, completed", "tell", { later: true }),
    runUntil("asynchronously, continued", /"referenceTaskName":"after"/),
    defined("ev_missing", define(operator("EVENT", "tell", { inputParameters: {} }))),
  ],
};

const handler = (name: string, more: Record<string, unknown>) => ({ name, active: true, ...more });
const starts = (name: string, more: Record<string, unknown> = {}) => ({ action: "start_workflow", start_workflow: { name, ...more } });

export const eventHandlers: Chapter = {
  name: "event-handlers",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("eh_started", define(step("work", { all: "${workflow.input}" }))),
    defined("eh_plain", define(step("work"))),
    get("none for an event", "/event/conductor:eh_sender:tell"),
    post(
      "store one",
      "/event",
      handler("eh_first", {
        event: "conductor:eh_sender:tell",
        condition: "$.order.id > 5",
        actions: [
          starts("eh_started", {
            correlationId: "${order.id}",
            input: { id: "${order.id}", who: "${workflowType}", mixed: "id ${order.id}" },
          }),
        ],
      }),
    ),
    post(
      "store one that completes",
      "/event",
      handler("eh_completes", {
        event: "conductor:eh_completer:complete",
        actions: [
          {
            action: "complete_task",
            complete_task: { workflowId: "${target}", taskRefName: "wait", output: { n: "${n}", text: "n is ${n}" } },
          },
        ],
      }),
    ),
    post(
      "store one that fails",
      "/event",
      handler("eh_fails", {
        event: "conductor:eh_failer:fail",
        actions: [
          {
            action: "fail_task",
            fail_task: { workflowId: "${target}", taskRefName: "wait", output: { why: "event" }, reasonForIncompletion: "told so" },
          },
        ],
      }),
    ),
    post("store it again", "/event", handler("eh_first", { event: "conductor:eh_sender:tell", actions: [starts("eh_started")] })),
    get("those of an event", "/event/conductor:eh_sender:tell"),
    get("all those of an event", "/event/conductor:eh_sender:tell?activeOnly=false"),
    post("store an inactive one", "/event", { name: "eh_idle", event: "conductor:eh_sender:tell", actions: [starts("eh_plain")] }),
    get("only the active ones", "/event/conductor:eh_sender:tell?activeOnly=true"),
    put("change an unknown one", "/event", handler("eh_nobody", { event: "conductor:a:b", actions: [starts("eh_started")] })),
    post("without a name", "/event", { event: "conductor:a:b", actions: [starts("eh_started")] }),
    post("without an event", "/event", { name: "eh_bad", actions: [starts("eh_started")] }),
    post("without actions", "/event", { name: "eh_bad", event: "conductor:a:b" }),
    post("with an empty list of actions", "/event", { name: "eh_bad", event: "conductor:a:b", actions: [] }),
    post("with an unknown action", "/event", { name: "eh_bad", event: "conductor:a:b", actions: [{ action: "dance" }] }),
    del("remove an unknown one", "/event/eh_nobody"),
    defined(
      "eh_sender",
      define(operator("EVENT", "tell", { sink: "conductor", inputParameters: { order: "${workflow.input.order}" } }), step("after")),
    ),
    start("send", { name: "eh_sender", input: { order: { id: 7 } } }),
    runUntil("sent", /"referenceTaskName":"after"/),
    get("the run that it started", "/workflow/eh_started/correlated/7?includeTasks=true", { until: /"referenceTaskName":"work"/ }),
    start("send what does not match", { name: "eh_sender", input: { order: { id: 3 } } }),
    runUntil("sent without a match", /"referenceTaskName":"after"/),
    get("no run for it", "/workflow/eh_started/correlated/3"),
    put(
      "change one",
      "/event",
      handler("eh_first", {
        event: "conductor:eh_sender:tell",
        actions: [starts("eh_started", { correlationId: "changed-${order.id}", version: 1 })],
      }),
    ),
    get("the changed one", "/event/conductor:eh_sender:tell"),
    start("send to the changed one", { name: "eh_sender", input: { order: { id: 4 } }, taskToDomain: { [TYPE]: "eh" } }),
    get("the run of the changed one", "/workflow/eh_started/correlated/changed-4?includeTasks=true", {
      until: /"referenceTaskName":"work"/,
    }),
    defined("eh_waiting", define(operator("HUMAN", "wait", {}), step("after", { got: "${wait.output}" }))),
    defined(
      "eh_completer",
      define(operator("EVENT", "tell", { sink: "conductor:complete", inputParameters: { target: "${workflow.input.target}", n: 5 } })),
    ),
    start("a run that waits", { name: "eh_waiting" }, "waiting"),
    runUntil("it waits", /"taskType":"HUMAN","status":"IN_PROGRESS"/, "waiting"),
    // The real server may lose one or both.
    startFor("complete it", "eh_completer"),
    startFor("complete it again", "eh_completer"),
    runUntil("it was completed", /"referenceTaskName":"after"/, "waiting"),
    defined(
      "eh_failer",
      define(operator("EVENT", "tell", { sink: "conductor:fail", inputParameters: { target: "${workflow.input.target}" } })),
    ),
    start("another run that waits", { name: "eh_waiting" }, "waiting"),
    runUntil("the other waits", /"taskType":"HUMAN","status":"IN_PROGRESS"/, "waiting"),
    startFor("fail it", "eh_failer"),
    reaches("it was failed", "FAILED", "waiting"),
    run("the failed one", "waiting"),
    post("remove is not a POST", "/event/eh_fails"),
    del("remove one", "/event/eh_fails"),
    get("the removed one", "/event/conductor:eh_failer:fail"),
  ],
};

function startFor(name: string, workflow: string): Step {
  return post(name, "/workflow", { name: workflow, input: { target: "{{waiting}}" } }, { keep: { wf: "" } });
}

const startTask = (startWorkflow: unknown, more: Record<string, unknown> = {}) =>
  operator("START_WORKFLOW", "begin", { inputParameters: { startWorkflow }, ...more });

const started = (name: string): Step[] => [
  start(`${name}, start`, { name: `sw_${name}`, input: { k: 1, child: "sw_child" }, correlationId: `corr-${name}` }),
  runUntil(`${name}, the run`, new RegExp(`"referenceTaskName":"after"|${hasFailed.source}`)),
];

export const startWorkflows: Chapter = {
  name: "operator-start-workflow",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    defined("sw_child", define(step("inner", { all: "${workflow.input}" }))),
    defined(
      "sw_plain",
      define(
        startTask({ name: "sw_child", version: 1, input: { k: "${workflow.input.k}" } }),
        step("after", { id: "${begin.output.workflowId}" }),
      ),
    ),
    ...started("plain"),
    get("the started run", "/workflow/sw_child/correlated/corr-plain?includeTasks=true", { until: /"referenceTaskName":"inner"/ }),
    defined(
      "sw_named",
      define(
        startTask({ name: "${workflow.input.child}", correlationId: "own-corr", priority: 4, taskToDomain: { x: "y" }, input: {} }),
        step("after"),
      ),
    ),
    ...started("named"),
    get("the run with its own correlation id", "/workflow/sw_child/correlated/own-corr", { until: /workflowId/ }),
    defined(
      "sw_inline",
      define(
        startTask({ name: "sw_in_place", workflowDef: { name: "sw_in_place", version: 3, schemaVersion: 2, tasks: [step("inside")] } }),
        step("after"),
      ),
    ),
    ...started("inline"),
    get("the run of the inline definition", "/workflow/sw_in_place/correlated/corr-inline?includeTasks=true", {
      until: /"referenceTaskName":"inside"/,
    }),
    defined("sw_nobody", define(startTask({ name: "sw_not_there" }), step("after"))),
    ...started("nobody"),
    defined("sw_nameless", define(startTask({ input: {} }), step("after"))),
    ...started("nameless"),
    defined("sw_text", define(startTask("not a request"), step("after"))),
    ...started("text"),
    defined("sw_wrong", define(startTask({ name: "sw_child", version: "one" }), step("after"))),
    ...started("wrong"),
    defined("sw_missing", define(operator("START_WORKFLOW", "begin", { inputParameters: {} }), step("after"))),
    ...started("missing"),
    defined("sw_async", define(startTask({ name: "sw_child" }, { asyncComplete: true }), step("after"))),
    start("async, start", { name: "sw_async", correlationId: "corr-async" }),
    runUntil("async, the run", /"workflowId":"[^"]+"\},"workflowTask"|"referenceTaskName":"after"/),
  ],
};
