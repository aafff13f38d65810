import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../../support/conductor-rest.ts";
import { operator, simple, switchOn } from "../../support/conductor-world.ts";
import { eventually } from "../../support/workflow-graph.ts";

interface Refusal {
  status: number;
  message: string;
  retryable: boolean;
  validationErrors?: { path: string; message: string }[];
}

/** Checks that the request is refused with this status in Conductor's own format. Returns the validation errors. */
async function refused(c: ConductorServer, status: number, method: string, path: string, body?: unknown): Promise<string> {
  const answer = await c.send(method, path, body);
  expect([answer.status, answer.headers["content-type"]], `${method} ${path}: ${answer.text}`).toEqual([status, "application/json"]);
  const refusal = JSON.parse(answer.text) as Refusal;
  expect(refusal).toMatchObject({ status, message: expect.any(String), retryable: false });
  return [refusal.message, ...(refusal.validationErrors ?? []).map(({ path: at, message }) => `${at}: ${message}`)].join("\n");
}

/** A run that must not be affected. */
async function bystander(c: ConductorServer) {
  await c.taskDef({ name: "calm", retryCount: 0 });
  const id = await c.begin([simple("calm")], { name: "bystander" });
  const task = await c.take("calm");
  return async () => {
    await c.update(task, { output: { fine: true } });
    expect(await c.run(id)).toMatchObject({ status: "COMPLETED", output: { fine: true } });
  };
}

/** Every route that takes a JSON body. */
const bodied: readonly [string, string][] = [
  ["POST", "/tasks"],
  ["POST", "/tasks/update-v2"],
  ["POST", "/tasks/ID/calm/COMPLETED"],
  ["POST", "/tasks/ID/calm/COMPLETED/sync"],
  ["POST", "/tasks/ID/COMPLETED/signal"],
  ["POST", "/workflow"],
  ["POST", "/workflow/bystander"],
  ["POST", "/workflow/execute/bystander/1"],
  ["PUT", "/workflow/ID/skiptask/calm"],
  ["POST", "/workflow/bystander/correlated"],
  ["PUT", "/workflow/bulk/pause"],
  ["POST", "/workflow/bulk/terminate"],
  ["DELETE", "/workflow/bulk/remove"],
  ["POST", "/metadata/taskdefs"],
  ["PUT", "/metadata/taskdefs"],
  ["POST", "/metadata/workflow"],
  ["PUT", "/metadata/workflow"],
  ["POST", "/metadata/workflow/validate"],
  ["POST", "/schema"],
];

const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;

it.each(bodied)("refuses broken, deep and wrong bodies of %s %s without an effect on other callers", async (method, pattern) => {
  const c = await startConductor();
  const done = await bystander(c);
  const [id] = await c.read<string[]>("/workflow/running/bystander");
  const path = pattern.replace("ID", id as string);
  for (const body of ['{"a":', '{"a" 1}', "[1,", "not json", `[${deep(5_000)}]`, deep(5_000), "3", '"text"', "true"]) {
    await refused(c, 400, method, path, body);
  }
  await done();
});

it("names the field that has the wrong type", async () => {
  const c = await startConductor();
  const done = await bystander(c);
  const result = { workflowInstanceId: "w", taskId: "t", status: "COMPLETED" };
  expect(await refused(c, 400, "POST", "/tasks", { ...result, outputData: [1] })).toContain("outputData");
  expect(await refused(c, 400, "POST", "/tasks", { ...result, callbackAfterSeconds: "soon" })).toContain("callbackAfterSeconds");
  expect(await refused(c, 400, "POST", "/tasks", { ...result, logs: "line" })).toContain("logs");
  expect(await refused(c, 400, "POST", "/tasks", { ...result, taskId: { id: 1 } })).toContain("taskId");
  expect(await refused(c, 400, "POST", "/tasks", { ...result, status: "DONE" })).toContain('status is "DONE"');
  expect(await refused(c, 400, "POST", "/workflow", { name: "bystander", input: "text" })).toContain("input");
  expect(await refused(c, 400, "POST", "/workflow", { name: "bystander", priority: 100 })).toContain("startWorkflow.arg0.priority");
  expect(await refused(c, 400, "POST", "/workflow", { name: "bystander", version: "x" })).toContain("version");
  expect(await refused(c, 400, "POST", "/workflow", {})).toContain("startWorkflow.arg0.name");
  expect(await refused(c, 400, "POST", "/metadata/taskdefs", [{ name: "t", retryCount: "three" }])).toContain("[0].retryCount");
  expect(await refused(c, 400, "POST", "/metadata/taskdefs", [{ name: "t", responseTimeoutSeconds: 0 }])).toContain(
    "responseTimeoutSeconds",
  );
  expect(await refused(c, 400, "POST", "/schema", { name: "s", type: "XML" })).toContain("type");
  expect(await refused(c, 400, "GET", "/tasks/poll/batch/t?count=many")).toContain("count");
  expect(await refused(c, 400, "GET", "/tasks/queue/size")).toContain("taskType");
  expect(await refused(c, 400, "GET", "/workflow/search?size=5001")).toContain("5000");
  await done();
});

it("responds to unknown ids with 404 and the id", async () => {
  const c = await startConductor();
  const done = await bystander(c);
  const result = { workflowInstanceId: "no-run", taskId: "no-task", status: "COMPLETED" };
  expect(await refused(c, 404, "POST", "/tasks", result)).toBe("No such workflow found by id: no-run");
  for (const [method, path] of [
    ["GET", "/workflow/no-run"],
    ["GET", "/workflow/no-run/status"],
    ["GET", "/workflow/no-run/tasks"],
    ["DELETE", "/workflow/no-run"],
    ["DELETE", "/workflow/no-run/remove"],
    ["PUT", "/workflow/no-run/pause"],
    ["PUT", "/workflow/no-run/resume"],
    ["POST", "/workflow/no-run/retry"],
    ["POST", "/workflow/no-run/restart"],
    ["POST", "/workflow/no-run/rerun"],
    ["POST", "/workflow/no-run/resetcallbacks"],
    ["PUT", "/workflow/no-run/skiptask/t"],
    ["PUT", "/workflow/decide/no-run"],
  ] as const) {
    expect(await refused(c, 404, method, path, method === "GET" ? undefined : {})).toBe("No such workflow found by id: no-run");
  }
  const [id] = await c.read<string[]>("/workflow/running/bystander");
  expect(await refused(c, 404, "POST", "/tasks", { ...result, workflowInstanceId: id })).toBe("No such task found by id: no-task");
  expect(await refused(c, 404, "GET", "/tasks/no-task")).toContain("no-task");
  expect(await refused(c, 404, "POST", "/workflow", { name: "no-flow" })).toContain("no-flow");
  expect(await refused(c, 404, "DELETE", "/metadata/taskdefs/no-task")).toContain("no-task");
  expect(await refused(c, 404, "DELETE", "/metadata/workflow/no-flow/1")).toContain("no-flow");
  await done();
});

it("refuses values that are too large to store, and continues", async () => {
  const c = await startConductor();
  const done = await bystander(c);
  const input = { much: "x".repeat(10_240 * 1_024) };
  expect(await refused(c, 413, "POST", "/workflow", { name: "bystander", input })).toContain("larger than");
  expect(await refused(c, 413, "POST", "/metadata/taskdefs", [{ name: "t", description: "x".repeat(13 * 1_024 * 1_024) }])).toContain(
    "larger than",
  );
  await done();
});

it("refuses definitions that cannot run, and names the task", async () => {
  const c = await startConductor();
  const done = await bystander(c);
  const define = (tasks: object[]) => refused(c, 400, "POST", "/metadata/workflow", { name: "bad", tasks });
  expect(await define([simple("a"), simple("a")])).toContain("taskReferenceName: a should be unique");
  expect(await define([switchOn("s", { x: [switchOn("s", { y: [simple("a")] })] })])).toContain("taskReferenceName: s should be unique");
  expect(await define([simple("a", { inputParameters: { x: "${b.output.y}" } })])).toContain("b");
  expect(await define([operator("FORK_JOIN", "f", { forkTasks: [] }), operator("JOIN", "j")])).toContain("taskName: f");
  expect(await define([operator("JOIN", "j", { joinOn: ["nobody"] })])).toContain("nobody");
  for (const type of ["DO_WHILE", "FORK_JOIN_DYNAMIC", "JSON_JQ_TRANSFORM", "EVENT", "KAFKA_PUBLISH", "JDBC"]) {
    expect(await define([operator(type, "it")])).toContain(type);
  }
  expect(
    await define([{ ...operator("SWITCH", "s"), evaluatorType: "python", expression: "1", decisionCases: { x: [simple("a")] } }]),
  ).toContain("python");
  expect(
    await define([{ ...operator("SWITCH", "s"), evaluatorType: "javascript", expression: "1 +", decisionCases: { x: [simple("a")] } }]),
  ).toContain("Expression is not well formatted: SyntaxError");
  expect((await c.send("GET", "/metadata/workflow/bad")).status).toBe(404);
  await done();
});

it("ends a workflow that starts itself after a hundred levels", async () => {
  const c = await startConductor({ ephemeral: true });
  const tasks = [operator("SUB_WORKFLOW", "again", { subWorkflowParam: { name: "endless", version: 1 } })];
  const id = await c.begin(tasks, { name: "endless", version: 1 });
  await eventually(async () => (await c.status(id)) !== "RUNNING");
  const found = await c.read<{ totalHits: number }>("/workflow/search?query=workflowType%3Dendless&size=0");
  expect([await c.status(id), found.totalHits]).toEqual(["FAILED", 101]);
});
