// Runs with mocked tasks, signals, runs that are executed while the caller waits, and forms of searches.
import type { Chapter, Step } from "../../../src/differential/script.ts";
import { execute, get, operator, post, quick, reaches, run, simple, start, taskDefs, workflow, workflowDef } from "../steps.ts";

const TYPE = "served_task";
const subWorkflow = (ref: string, name: string) => operator("SUB_WORKFLOW", ref, { subWorkflowParam: { name, version: 1 } });

const choice = operator("SWITCH", "choice", {
  evaluatorType: "value-param",
  expression: "way",
  inputParameters: { way: "${first.output.way}" },
  decisionCases: { left: [simple(TYPE, "left")] },
  defaultCase: [simple(TYPE, "right")],
});
const mocked = workflow("mocked_flow", [simple(TYPE, "first", { x: "${workflow.input.x}" }), choice, operator("WAIT", "wait")], {
  outputParameters: { left: "${left.output.z}", waited: "${wait.output.q}" },
});
const inline = operator("INLINE", "sum", {
  inputParameters: { evaluatorType: "javascript", expression: "$.a + 1", a: "${first.output.n}" },
});
const test = (name: string, body: unknown, more: Partial<Step> = {}): Step => post(name, "/workflow/test", body, more);

export const tests: Chapter = {
  name: "workflow-test",
  steps: [
    taskDefs("define the task", quick(TYPE), quick(`${TYPE}_again`, { retryCount: 2 })),
    workflowDef("define", mocked),
    workflowDef("define a parent", workflow("mocked_parent", [subWorkflow("sub", "mocked_flow"), simple(TYPE, "after")])),
    workflowDef(
      "define one with a script",
      workflow("mocked_script", [simple(TYPE, "first"), inline], { outputParameters: { n: "${sum.output.result}" } }),
    ),
    workflowDef("define one with retries", workflow("mocked_retries", [simple(`${TYPE}_again`, "first")])),
    test("to its end", {
      name: "mocked_flow",
      version: 1,
      input: { x: 1 },
      taskRefToMockOutput: {
        first: [{ status: "COMPLETED", output: { way: "left" } }],
        left: [{ output: { z: 2 } }],
        wait: [{ status: "COMPLETED", output: { q: 3 } }],
      },
    }),
    test("a failure", {
      name: "mocked_flow",
      version: 1,
      taskRefToMockOutput: { first: [{ status: "COMPLETED", output: { way: "left" } }], left: [{ status: "FAILED", output: { z: 1 } }] },
    }),
    test("with retries", {
      name: "mocked_retries",
      version: 1,
      taskRefToMockOutput: {
        first: [
          { status: "FAILED", output: { n: 1 } },
          { status: "COMPLETED", output: { n: 2 } },
        ],
      },
    }),
    test(
      "without a mock for the second task",
      {
        name: "mocked_flow",
        version: 1,
        taskRefToMockOutput: { first: [{ status: "COMPLETED", output: { way: "right" } }] },
      },
      { keep: { wf: "workflowId" } },
    ),
    test("without mocks", { name: "mocked_flow", version: 1 }),
    test("with a definition of its own", {
      name: "own",
      version: 1,
      workflowDef: workflow("own_flow", [simple(TYPE, "one")]),
      taskRefToMockOutput: { one: [{ output: { k: 1 } }] },
    }),
    test("with a script", { name: "mocked_script", version: 1, taskRefToMockOutput: { first: [{ output: { n: 41 } }] } }),
    test("with a child", {
      name: "mocked_parent",
      version: 1,
      taskRefToMockOutput: { sub: [], after: [{ output: {} }] },
      subWorkflowTestRequest: {
        sub: {
          name: "mocked_flow",
          taskRefToMockOutput: { first: [{ output: { way: "left" } }], left: [{ output: { z: 5 } }], wait: [{ output: { q: 1 } }] },
        },
      },
    }),
    test("of an unknown workflow", { name: "no_such_flow", version: 1, taskRefToMockOutput: {} }),
    test("without a name", { version: 1, taskRefToMockOutput: {} }),
    test("with a bad status", { name: "mocked_flow", version: 1, taskRefToMockOutput: { first: [{ status: "BOGUS" }] } }),
    get("a worker gets nothing", `/tasks/poll/${TYPE}?workerid=w1`),
  ],
};

const WAITS = "served_wait";
const signal = (name: string, id: string, status: string, parameters: string, body: unknown = {}): Step =>
  post(name, `/tasks/{{${id}}}/${status}/signal/sync?${parameters}`, body);
const strategies = ["TARGET_WORKFLOW", "BLOCKING_WORKFLOW", "BLOCKING_TASK", "BLOCKING_TASK_INPUT"];

export const signals: Chapter = {
  name: "signal-strategies",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    workflowDef(
      "define one with three waits",
      workflow(
        WAITS,
        [
          operator("WAIT", "wait1", { inputParameters: { at: 1 } }),
          operator("WAIT", "wait2", { inputParameters: { got: "${wait1.output.v}" } }),
          operator("WAIT", "wait3"),
        ],
        { outputParameters: { v: "${wait3.output.v}" } },
      ),
    ),
    workflowDef(
      "define a parent",
      workflow("served_parent", [operator("NOOP", "noop"), subWorkflow("sub", WAITS), operator("WAIT", "own")]),
    ),
    workflowDef("define a grandparent", workflow("served_grandparent", [subWorkflow("deep", "served_parent")])),
    workflowDef(
      "define one that fails",
      workflow("served_end", [
        operator("TERMINATE", "end", {
          inputParameters: { terminationStatus: "FAILED", terminationReason: "so", workflowOutput: { o: 1 } },
        }),
      ]),
    ),
    workflowDef("define one with a person", workflow("served_person", [operator("HUMAN", "person"), simple(TYPE, "one")])),
    ...strategies.flatMap((strategy) => [
      execute(`execute, ${strategy}`, `${WAITS}/1`, `waitForSeconds=5&consistency=SYNCHRONOUS&returnStrategy=${strategy}`, {
        input: { s: strategy },
      }),
      execute(`execute the parent, ${strategy}`, "served_parent/1", `waitForSeconds=20&returnStrategy=${strategy}`, {}),
    ]),
    execute("durable", `${WAITS}/1`, "waitForSeconds=5&consistency=DURABLE"),
    execute("durable in a region", `${WAITS}/1`, "waitForSeconds=5&consistency=REGION_DURABLE"),
    execute("an unknown consistency", `${WAITS}/1`, "waitForSeconds=5&consistency=NOPE"),
    execute("ends failed", "served_end/1", "waitForSeconds=5"),
    execute("ends failed, the blocking task", "served_end/1", "waitForSeconds=5&returnStrategy=BLOCKING_TASK"),
    execute("until the noop", "served_parent/1", "waitForSeconds=20&waitUntilTaskRef=noop"),
    execute("until the noop or another", "served_parent/1", "waitForSeconds=20&waitUntilTaskRef=noop,own&returnStrategy=BLOCKING_TASK"),
    execute("until a task of the child", "served_grandparent/1", "waitForSeconds=2&waitUntilTaskRef=wait1"),
    execute("until a task that is not there", "served_parent/1", "waitForSeconds=20&waitUntilTaskRef=nobody"),
    execute("at a person", "served_person/1", "waitForSeconds=1"),
    execute("with a definition of its own", "own/1", "waitForSeconds=5", {
      workflowDef: workflow("own_sync_flow", [operator("NOOP", "noop")]),
    }),
    execute("zero seconds", "served_person/1", "waitForSeconds=0&waitUntilTaskRef=person", {}),
    ...strategies.flatMap((strategy) => [
      execute(`begin for ${strategy}`, "served_grandparent/1", "waitForSeconds=30", {}, { keep: { wf: "workflowId" } }),
      signal(`signal 1, ${strategy}`, "wf", "COMPLETED", `timeoutMillis=5000&returnStrategy=${strategy}`, { v: 1 }),
      signal(`signal 2, ${strategy}`, "wf", "COMPLETED", `timeoutMillis=5000&returnStrategy=${strategy}`, { v: 2 }),
    ]),
    signal("signal 3", "wf", "COMPLETED", "timeoutMillis=20000&returnStrategy=BLOCKING_TASK", { v: 3 }),
    signal("signal 4 ends it", "wf", "COMPLETED", "timeoutMillis=20000&returnStrategy=TARGET_WORKFLOW", { v: 4 }),
    signal("signal after the end", "wf", "COMPLETED", "timeoutMillis=500"),
    execute("begin one to fail", `${WAITS}/1`, "waitForSeconds=5", {}, { keep: { wf: "workflowId" } }),
    signal("fail it", "wf", "FAILED", "timeoutMillis=5000&returnStrategy=BLOCKING_TASK", { v: 1 }),
    execute("begin one to go on", `${WAITS}/1`, "waitForSeconds=5", {}, { keep: { wf: "workflowId" } }),
    signal("in progress", "wf", "IN_PROGRESS", "timeoutMillis=500&returnStrategy=BLOCKING_TASK", { v: 1 }),
    run("in progress, the run"),
    start("a person", { name: "served_person" }),
    get("the person waits", "/workflow/{{wf}}", { until: /"taskType":"HUMAN","status":"IN_PROGRESS"/ }),
    signal("signal the person", "wf", "COMPLETED", "timeoutMillis=500", { v: 1 }),
  ],
};

const search = (name: string, query: string, more = ""): Step =>
  get(name, `/workflow/search?query=${encodeURIComponent(query)}&size=1${more}`);

export const searches: Chapter = {
  name: "search-forms",
  steps: [
    taskDefs("define the task", quick(TYPE)),
    workflowDef("define", workflow("found_flow", [simple(TYPE, "one")])),
    start("start", { name: "found_flow", correlationId: "cf" }),
    post("complete", "/tasks/{{wf}}/one/COMPLETED", {}),
    reaches("ends", "COMPLETED"),
    search("a condition in parentheses", "workflowType='found_flow' AND (status='COMPLETED')"),
    search("all in parentheses", "(workflowType='found_flow' AND status='COMPLETED')"),
    search("both in parentheses", "(workflowType='found_flow') AND (status='COMPLETED')"),
    search("two in one pair", "workflowType='found_flow' AND (status='COMPLETED' AND correlationId='cf')"),
    search("doubled parentheses", "((workflowType='found_flow'))"),
    search("a list in parentheses", "workflowType='found_flow' AND (status IN (COMPLETED,FAILED))"),
    search("spaces inside", "( workflowType = 'found_flow' ) AND ( status = 'COMPLETED' )"),
    search("unclosed", "workflowType='found_flow' AND (status='COMPLETED'"),
    search("a lower and", "workflowType='found_flow' and status='COMPLETED'"),
    search("or in parentheses", "workflowType='found_flow' AND (status='COMPLETED' OR status='FAILED')"),
    search("a greater time in parentheses", "workflowType='found_flow' AND (startTime>0)"),
    search("no quotes", "workflowType=found_flow AND status=COMPLETED"),
    search("empty parentheses", "()"),
    search("classifier", "workflowType='found_flow' AND classifier='workflow'"),
    search("top level", "workflowType='found_flow'", "&topLevelOnly=true"),
    search("classifier by parameter", "workflowType='found_flow'", "&classifier=workflow"),
    get(
      "tasks in parentheses",
      "/tasks/search?size=1&query=taskType%3Dserved_task%20AND%20(status%3D'COMPLETED')%20AND%20workflowId%3D{{wf}}",
    ),
  ],
};
