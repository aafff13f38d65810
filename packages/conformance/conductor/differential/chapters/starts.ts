// The ways to start a run and to read it, and the requests that are refused.
import type { Chapter } from "../../../src/differential/script.ts";
import { get, post, put, quick, run, simple, start, taskDefs, workflow, workflowDef } from "../steps.ts";

const definition = workflow("start_flow", [simple("start_task", "one", { who: "${workflow.input.who}" })], {
  inputTemplate: { who: "nobody", extra: 1 },
  outputParameters: { answer: "${one.output.answer}" },
});

export const misc: Chapter = {
  name: "misc",
  steps: [
    { name: "health", method: "GET", path: "/health" },
    get("health below api", "/health"),
    get("version", "/version"),
    get("an unknown path", "/no/such/path"),
    post("an unknown path posted to", "/no/such/path", {}),
    put("a wrong method", "/workflow/search", {}),
    post("token", "/token", { keyId: "k", keySecret: "s" }),
    post("schema", "/schema", { name: "s", version: 1, type: "JSON", data: {} }),
    get("schema by name", "/schema/s"),
    get("environment", "/environment/nothing"),
    get("secrets", "/secrets"),
  ],
};

export const starts: Chapter = {
  name: "starts",
  steps: [
    taskDefs("define the task", quick("start_task", { inputTemplate: { fromTemplate: true } })),
    workflowDef("define the workflow", definition),
    workflowDef("define version 2", { ...definition, version: 2, description: "two" }),
    start("by request", { name: "start_flow", version: 1, input: { who: "Ann" }, correlationId: "c1", priority: 50 }),
    run("the run"),
    get("without tasks", "/workflow/{{wf}}?includeTasks=false"),
    get("its status", "/workflow/{{wf}}/status"),
    get("its status with output and variables", "/workflow/{{wf}}/status?includeOutput=true&includeVariables=true"),
    get("its tasks", "/workflow/{{wf}}/tasks"),
    get("its tasks by status", "/workflow/{{wf}}/tasks?status=COMPLETED"),
    get("its tasks, one of them", "/workflow/{{wf}}/tasks?start=0&count=1&status=SCHEDULED"),
    start("the latest version", { name: "start_flow", input: { who: "Ben" } }, "latest"),
    get("is version 2", "/workflow/{{latest}}?includeTasks=false"),
    start("without input", { name: "start_flow", version: 1 }, "bare"),
    run("template without input", "bare"),
    start("with empty input", { name: "start_flow", version: 1, input: {} }, "empty"),
    run("template with empty input", "empty"),
    start("unknown fields are ignored", { name: "start_flow", colour: "red" }, "loose"),
    start("with domains", { name: "start_flow", version: 1, taskToDomain: { start_task: "d1" } }, "domains"),
    run("domain on the task", "domains"),
    start(
      "with a definition of its own",
      { name: "inline_flow", workflowDef: workflow("inline_flow", [simple("inline_task", "one")]) },
      "inline",
    ),
    run("the inline run", "inline"),
    start(
      "with a definition of its own without tasks",
      { name: "no_tasks_flow", workflowDef: { name: "no_tasks_flow", version: 1, tasks: [] } },
      "noTasks",
    ),
    run("the run without tasks", "noTasks"),
    start("createdBy and event", { name: "start_flow", version: 1, createdBy: "me", event: "e" }, "created"),
    get("who created it", "/workflow/{{created}}?includeTasks=false"),
    post("by name in the path", "/workflow/start_flow?version=1&correlationId=c2&priority=3", { who: "Cid" }, { keep: { path: "" } }),
    get("the run by path", "/workflow/{{path}}?includeTasks=false"),
    post("by path, latest", "/workflow/start_flow", {}, { keep: { pathLatest: "" } }),
    post("by path without a body", "/workflow/start_flow"),
    post("by path, unknown", "/workflow/no_such_flow", {}),
    post("by path, unknown version", "/workflow/start_flow?version=9", {}),
    post("by path, priority out of range", "/workflow/start_flow?priority=100", {}),
    post("by path, an array as input", "/workflow/start_flow", []),
    post("unknown", "/workflow", { name: "no_such_flow", version: 1 }),
    post("unknown without version", "/workflow", { name: "no_such_flow" }),
    post("unknown version", "/workflow", { name: "start_flow", version: 9 }),
    post("no name", "/workflow", { version: 1 }),
    post("empty object", "/workflow", {}),
    post("no body", "/workflow"),
    post("body cut short", "/workflow", '{"name":'),
    post("an array", "/workflow", "[]"),
    post("input null", "/workflow", { name: "start_flow", input: null }),
    post("input a string", "/workflow", { name: "start_flow", input: "x" }),
    post("input an array", "/workflow", { name: "start_flow", input: [] }),
    post("priority 100", "/workflow", { name: "start_flow", priority: 100 }),
    post("priority -1", "/workflow", { name: "start_flow", priority: -1 }),
    post("version a string", "/workflow", { name: "start_flow", version: "one" }),
    post("unregistered task", "/metadata/workflow", workflow("unregistered_flow", [simple("never_registered", "one")])),
    start("with an unregistered task", { name: "unregistered_flow" }, "unregistered"),
    run("the unregistered task", "unregistered"),
    get("unknown run", "/workflow/no-such-run"),
    get("status of an unknown run", "/workflow/no-such-run/status"),
    get("tasks of an unknown run", "/workflow/no-such-run/tasks"),
    get("running", "/workflow/running/inline_flow?version=1"),
    get("running, unknown", "/workflow/running/no_such_flow"),
    get("correlated", "/workflow/start_flow/correlated/c1"),
    get("correlated with tasks", "/workflow/start_flow/correlated/c1?includeClosed=true&includeTasks=true"),
    get("correlated with nothing", "/workflow/start_flow/correlated/nothing"),
    post("correlated, several", "/workflow/start_flow/correlated?includeClosed=true", ["c1", "c2", "nothing"]),
  ],
};

const keyed = (name: string, strategy: string | undefined, as: string) =>
  start(name, { name: "key_flow", idempotencyKey: "k1", ...(strategy === undefined ? {} : { idempotencyStrategy: strategy }) }, as);

export const idempotency: Chapter = {
  name: "idempotency",
  steps: [
    workflowDef("define", workflow("key_flow", [simple("key_task", "one")])),
    keyed("first", "RETURN_EXISTING", "first"),
    get("carries the key", "/workflow/{{first}}?includeTasks=false"),
    keyed("return existing", "RETURN_EXISTING", "second"),
    keyed("fail", "FAIL", "third"),
    keyed("fail on running", "FAIL_ON_RUNNING", "fourth"),
    keyed("no strategy", undefined, "fifth"),
    keyed("unknown strategy", "NOPE", "sixth"),
  ],
};
