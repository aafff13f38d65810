import { expect, it, vi } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { startConductor } from "../../support/conductor-rest.ts";
import { operator, simple } from "../../support/conductor-world.ts";

it("[C106] starts the failure workflow once, with the failed task, for a run and for a child", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 0 });
  await c.workflow({ name: "mourning", tasks: [simple("mourn", { inputParameters: { all: "${workflow.input}" } })] });
  const id = await c.begin([simple("t")], { failureWorkflow: "mourning", start: { input: { own: 1 }, correlationId: "c1" } });
  const failed = await c.work("t", { status: "FAILED", reason: "no luck" });
  const mourn = await c.take("mourn");
  const given = mourn.inputData.all as JsonObject;
  const { output, reasonForIncompletion } = await c.run(id);
  expect(given).toMatchObject({
    own: 1,
    workflowId: id,
    reason: reasonForIncompletion,
    failureStatus: "FAILED",
    failureTaskId: failed.taskId,
    failedWorkflow: { workflowId: id, status: "FAILED", tasks: [{ taskId: failed.taskId, status: "FAILED" }] },
  });
  expect(output).toMatchObject({ "conductor.failure_workflow": mourn.workflowInstanceId });
  expect(await c.run(mourn.workflowInstanceId)).toMatchObject({ correlationId: "c1", status: "RUNNING" });
  await c.update(mourn);
  expect(await c.poll("mourn")).toBeUndefined();
  expect(await c.read<string[]>("/workflow/running/mourning?version=1")).toEqual([]);

  await c.workflow({ name: "child", tasks: [simple("t")], failureWorkflow: "mourning" });
  const parent = await c.begin([operator("SUB_WORKFLOW", "s", { subWorkflowParam: { name: "child" } })], { name: "parent" });
  const child = await c.child(parent, "s");
  await c.work("t", { status: "FAILED" });
  expect((await c.take("mourn")).inputData.all).toMatchObject({ workflowId: child });
  expect(await c.poll("mourn")).toBeUndefined();
  expect(await c.status(parent)).toBe("FAILED");
});

it("a failure workflow gets no copy of the failed run when its input would become too large", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 0 });
  await c.workflow({ name: "mourning", tasks: [simple("mourn", { inputParameters: { id: "${workflow.input.workflowId}" } })] });
  const large = "x".repeat(4_000_000);
  const id = await c.begin([simple("t")], { failureWorkflow: "mourning", start: { input: { own: large } } });
  await c.work("t", { status: "FAILED", output: { large } });
  const mourn = await vi.waitFor(() => c.take("mourn"), { timeout: 30_000 });
  expect(mourn.inputData).toEqual({ id });
  const { input } = await c.run(mourn.workflowInstanceId);
  expect(Object.keys(input as JsonObject).sort()).toEqual(["failureStatus", "failureTaskId", "own", "reason", "workflowId"]);
});

it("[C106] starts another one when the run is retried and fails again, and starts each once over a restart of the server", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 0 });
  await c.workflow({ name: "mourning", tasks: [simple("mourn")] });
  const id = await c.begin([simple("t")], { failureWorkflow: "mourning" });
  await c.work("t", { status: "FAILED" });
  const first = (await c.run(id)).output["conductor.failure_workflow"];
  await c.close();
  const again = await startConductor({}, c);
  await again.settle();
  expect(await again.read<string[]>("/workflow/running/mourning?version=1")).toEqual([first]);
  await again.order("POST", id, "/retry");
  await again.work("t", { status: "FAILED" });
  const second = (await again.run(id)).output["conductor.failure_workflow"];
  expect(second).not.toBe(first);
  expect((await again.read<string[]>("/workflow/running/mourning?version=1")).sort()).toEqual([first, second].sort());
});

it("[C107] starts no failure workflow for a run that is terminated by hand", async () => {
  const c = await startConductor();
  await c.workflow({ name: "mourning", tasks: [simple("mourn")] });
  const id = await c.begin([simple("t")], { failureWorkflow: "mourning" });
  await c.order("DELETE", id, "?reason=by+hand");
  expect(await c.run(id)).toMatchObject({ status: "TERMINATED", reasonForIncompletion: "by hand" });
  expect(await c.poll("mourn")).toBeUndefined();
  expect((await c.run(id)).output).not.toHaveProperty(["conductor.failure_workflow"]);
});

it("starts a failure workflow that the input names, when the run times out", async () => {
  const c = await startConductor();
  await c.workflow({ name: "mourning", tasks: [simple("mourn", { inputParameters: { why: "${workflow.input.failureStatus}" } })] });
  const timed = { timeoutSeconds: 10, timeoutPolicy: "TIME_OUT_WF", failureWorkflow: "$workflow.input.rite" };
  const id = await c.begin([simple("t")], { ...timed, start: { input: { rite: "mourning" } } });
  await c.clock.advance(10_000);
  await c.settle();
  expect(await c.status(id)).toBe("TIMED_OUT");
  expect((await c.take("mourn")).inputData).toEqual({ why: "TIMED_OUT" });
});

it("reports in the output of the failed run that its failure workflow could not be started", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 0 });
  const id = await c.begin([simple("t")], { failureWorkflow: "nobody_wrote_it" });
  await c.work("t", { status: "FAILED" });
  const said = (await c.run(id)).output["conductor.failure_workflow"];
  expect(said).toMatch(/^Error workflow nobody_wrote_it failed to start\. {2}reason: /);
});
