// The workers and clients of the official SDKs, unchanged, on our server. The same tests also run on the real server, which shows that they
// expect what a Conductor server does.
import { fileURLToPath } from "node:url";
import { beforeAll, describe, expect, it } from "vitest";
import { startOurServer } from "../src/longshore.ts";
import { openFileStage, openStage } from "../src/stage.ts";
import { pythonWithSdk } from "./fetch.ts";
import { type Operator, operatorOf } from "./operator.ts";
import { startReferenceServer } from "./reference.ts";
import { defineScenarios, everyEnding, everyTaskOnce } from "./scenarios.ts";
import { type SdkClients, sdkClients } from "./sdk-clients.ts";
import { javascriptWorker, pythonWorker } from "./workers.ts";

const fileStage = openFileStage();

/** As many as the reference completes in 15 seconds. */
const MANY_ON_REFERENCE = 200;
const MANY_ON_OURS = 2_000;

/** Two calls of the JavaScript SDK send an output inside another object. Our server removes this object. */
const wrapped = (output: object): object => ({ taskOutput: output });

const servers = [
  { name: "the real server", start: () => startReferenceServer(fileStage), many: MANY_ON_REFERENCE, given: wrapped },
  { name: "our server", start: () => startOurServer(fileStage), many: MANY_ON_OURS, given: (output: object) => output },
];

describe.each(servers)("on $name", ({ start, many, given }) => {
  let operator: Operator;
  let clients: SdkClients;

  beforeAll(async () => {
    const { url } = await start();
    operator = operatorOf(url);
    await defineScenarios(operator);
    clients = await sdkClients(url);
  });

  it("the JavaScript SDK's worker completes, fails, retries, gives up, defers, and works longer than its lease", async (context) => {
    await javascriptWorker(openStage(context), operator.url);
    await everyEnding(operator);
  });

  it("the JavaScript SDK's worker executes every task once", async (context) => {
    await everyTaskOnce(openStage(context), operator, javascriptWorker, many);
  });

  it("the Python SDK's worker completes, fails, retries, gives up, defers, and works longer than its lease", async (context) => {
    await pythonWorker(openStage(context), operator.url);
    await everyEnding(operator);
  });

  it("the Python SDK's worker executes every task once", async (context) => {
    await everyTaskOnce(openStage(context), operator, pythonWorker, many / 4);
  });

  it("the JavaScript SDK's metadata client stores and reads definitions", async () => {
    const { metadata } = clients;
    await metadata.registerTask({ name: "js_def", retryCount: 4, responseTimeoutSeconds: 60 });
    await metadata.registerTasks([{ name: "js_def_2" }, { name: "js_def_3" }]);
    expect(await metadata.getTask("js_def")).toMatchObject({ name: "js_def", retryCount: 4 });
    await metadata.updateTask({ name: "js_def", retryCount: 5, responseTimeoutSeconds: 60 });
    expect(await metadata.getTask("js_def")).toMatchObject({ retryCount: 5 });
    expect((await metadata.getAllTaskDefs()).map(({ name }) => name)).toEqual(expect.arrayContaining(["js_def", "js_def_2", "js_def_3"]));
    await metadata.unregisterTask("js_def");
    await expect(metadata.getTask("js_def")).rejects.toThrow(/js_def/);

    const task = { name: "js_def_2", taskReferenceName: "one", type: "SIMPLE", inputParameters: {} };
    await metadata.registerWorkflowDef({ name: "js_flow", version: 1, schemaVersion: 2, tasks: [task] });
    await expect(metadata.registerWorkflowDef({ name: "js_flow", version: 1, schemaVersion: 2, tasks: [task] })).rejects.toThrow(
      /already exists/,
    );
    await metadata.registerWorkflowDef({ name: "js_flow", version: 1, schemaVersion: 2, tasks: [task], description: "again" }, true);
    expect(await metadata.getWorkflowDef("js_flow", 1)).toMatchObject({ name: "js_flow", version: 1, description: "again" });
    expect((await metadata.getAllWorkflowDefs()).map(({ name }) => name)).toContain("js_flow");
    await metadata.unregisterWorkflow("js_flow", 1);
    await expect(metadata.getWorkflowDef("js_flow", 1)).rejects.toThrow(/js_flow/);
  });

  it("the JavaScript SDK's workflow client starts, controls and reads runs", async () => {
    const { workflows } = clients;
    await operator.defineTask("js_task", { retryCount: 0 });
    const step = (ref: string): Record<string, unknown> => ({
      name: "js_task",
      taskReferenceName: ref,
      type: "SIMPLE",
      inputParameters: {},
    });
    await workflows.registerWorkflow(true, { name: "js_steered", version: 1, schemaVersion: 2, tasks: [step("one"), step("two")] });

    const id = await workflows.startWorkflow({ name: "js_steered", version: 1, input: { k: 1 }, correlationId: "js-1", priority: 3 });
    expect(await workflows.getWorkflow(id, true)).toMatchObject({ status: "RUNNING", correlationId: "js-1", priority: 3 });
    await workflows.pause(id);
    expect(await workflows.getWorkflowStatus(id, true, true)).toMatchObject({ workflowId: id, status: "PAUSED" });
    await workflows.resume(id);
    await workflows.updateTaskByRefName("one", id, "COMPLETED", { done: 1 });
    const run = await workflows.getExecution(id, true);
    expect(run.tasks.map(({ referenceTaskName }) => referenceTaskName)).toEqual(["one", "two"]);
    const second = run.tasks[1]?.taskId ?? "";
    expect(await workflows.getTask(second)).toMatchObject({ taskId: second });
    await workflows.updateTask(second, id, "FAILED_WITH_TERMINAL_ERROR", { done: 0 });
    expect((await operator.ended(id)).status).toBe("FAILED");
    await workflows.retry(id, false);
    expect(await workflows.updateTaskSync("two", id, "COMPLETED", { done: 2 })).toMatchObject({
      status: "COMPLETED",
      output: given({ done: 2 }),
    });
    expect(await workflows.reRun(id, {})).toBe(id);
    await workflows.skipTasksFromWorkflow(id, "two", {});
    await workflows.terminate(id, "enough");
    expect(await workflows.getWorkflow(id, false)).toMatchObject({ status: "TERMINATED", reasonForIncompletion: "enough" });
    await workflows.restart(id, false);
    expect(await operator.status(id)).toBe("RUNNING");
    const found = await workflows.search(0, 10, `workflowId='${id}'`, "*");
    expect(found).toMatchObject({ totalHits: 1, results: [{ workflowId: id, status: "RUNNING" }] });
    await workflows.terminate(id, "enough");

    const byName = await workflows.startWorkflowByName("js_steered", { k: 2 }, 1, "js-2", 0);
    expect(await workflows.getWorkflow(byName, false)).toMatchObject({ status: "RUNNING", correlationId: "js-2" });
    await workflows.terminate(byName, "enough");
  });

  it("the JavaScript SDK's clients execute, signal, log and count", async () => {
    const { workflows, tasks } = clients;
    await operator.defineTask("js_logged");
    await operator.defineWorkflow("js_waiting", [
      { name: "wait", taskReferenceName: "wait", type: "WAIT" },
      { name: "js_logged", taskReferenceName: "one", type: "SIMPLE", inputParameters: { said: "${wait.output}" } },
    ]);
    const blocked = await workflows.executeWorkflow({ name: "js_waiting", version: 1, input: {} }, "js_waiting", 1, "request-1");
    expect(blocked).toMatchObject({ status: "RUNNING" });
    const id = String(blocked.workflowId);
    await workflows.signalAsync(id, "COMPLETED", { s: 7 });
    const run = await operator.shows(id, "the task after the wait", (seen) => seen.tasks.length === 2);
    const task = run.tasks[1]?.taskId ?? "";
    expect(run.tasks[1]?.inputData).toEqual({ said: given({ s: 7 }) });
    expect(await tasks.getQueueSizeForTask(["js_logged"])).toEqual({ js_logged: 1 });
    await tasks.addTaskLog(task, "a line");
    // It sends the line in quotes, and the real server stores the quotes.
    expect((await tasks.getTaskLogs(task)).map(({ log }) => log.replaceAll('"', ""))).toEqual(["a line"]);
    expect(await tasks.getTask(task)).toMatchObject({ taskId: task });
    expect(await tasks.updateTaskResult(id, "one", "COMPLETED", { r: 1 })).toBe(task);
    expect((await operator.ended(id)).status).toBe("COMPLETED");
    expect(await tasks.search(0, 10, "", "*", "taskType=js_logged")).toMatchObject({ totalHits: 1 });
    expect(await tasks.getTaskPollData("js_logged")).toEqual([]);
  });

  it("the Python SDK's clients define, start, control, poll, update and search", async (context) => {
    const program = fileURLToPath(new URL("./programs/sdk_clients.py", import.meta.url));
    const env = { SERVER_URL: operator.url, PREFIX: "py" };
    const child = openStage(context).start(pythonWithSdk(), [program], { name: "Python clients", env });
    const [line] = await child.printed(/^\{.*\}$/m);
    expect(JSON.parse(line)).toEqual({
      "task definition": ["py_task", 1, 60],
      "updated task definition": "changed",
      "listed task definition": true,
      "workflow definition": ["py_flow", 1, ["one", "two"]],
      "listed workflow definition": true,
      started: ["RUNNING", "py-1", 5, ["SCHEDULED"]],
      queue: 1,
      polled: ["py_task", "IN_PROGRESS", { n: 1 }, 1],
      "by id": true,
      logs: ["a line"],
      "poll data": ["py_task"],
      "update answers the id": true,
      batch: [["two", { from: 10 }]],
      "updated by reference": "COMPLETED",
      ended: ["COMPLETED", { n: 20 }],
      paused: "PAUSED",
      resumed: "RUNNING",
      terminated: ["TERMINATED", "enough"],
      restarted: "RUNNING",
      failed: "FAILED",
      retried: "RUNNING",
      completed: "COMPLETED",
      rerun: true,
      "rerun status": "RUNNING",
      search: [true],
      unregistered: 404,
    });
  });
});
