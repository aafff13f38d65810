import { expect, it } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { operator, simple } from "../../support/conductor-world.ts";

const second = 1_000;

it("[C33] gives each task its evaluated input and the run its evaluated output", async () => {
  const c = await startConductor();
  const t1 = simple("t1", { inputParameters: { p1: "${workflow.input.a}", p2: 2, p3: "${CPEWF_TASK_ID}", k: null } });
  const t2 = simple("t2", { inputParameters: { tp1: "${workflow.input.a}", tp2: "${t1.output.op}" } });
  const outputParameters = { o1: "${workflow.input.a}", o2: "${t2.output.x}", o3: "${t1.output.op}" };
  const id = await c.begin([t1, t2], { outputParameters, start: { input: { a: "A" } } });
  const first = await c.take("t1");
  expect(first.inputData).toEqual({ p1: "A", p2: 2, p3: first.taskId, k: null });
  await c.update(first, { output: { op: "one" } });
  expect((await c.work("t2", { output: { x: 7 } })).inputData).toEqual({ tp1: "A", tp2: "one" });
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED", output: { o1: "A", o2: 7, o3: "one" } });
});

it("[C34] ends the run at a terminal error, without another attempt", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("n1", { taskReferenceName: "r1" })], { outputParameters: { seen: "${r1.output.x}" } });
  const task = await c.work("n1", { status: "FAILED_WITH_TERMINAL_ERROR", reason: "bad luck", output: { x: 1 } });
  const run = await c.run(id);
  expect(run).toMatchObject({
    status: "FAILED",
    reasonForIncompletion: `Task ${task.taskId} failed with status: FAILED and reason: 'bad luck'`,
    failedReferenceTaskNames: ["r1"],
    failedTaskNames: ["n1"],
    output: { seen: 1 },
  });
  expect(run.tasks).toHaveLength(1);
  expect(run.tasks[0]).toMatchObject({ status: "FAILED_WITH_TERMINAL_ERROR", retryCount: 0, outputData: { x: 1 } });
});

it("[C35] queues the next attempt after the delay, linked to the failed one", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 3, retryLogic: "FIXED", retryDelaySeconds: 2 });
  const id = await c.begin([simple("t")]);
  const failed = await c.work("t", { status: "FAILED", reason: "once" });
  await c.clock.advance(2 * second - 1);
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(1);
  const again = await c.take("t");
  expect(again).toMatchObject({ retryCount: 1, retriedTaskId: failed.taskId, status: "IN_PROGRESS" });
  expect(again.taskId).not.toBe(failed.taskId);
  const [old, fresh] = (await c.run(id)).tasks;
  expect(old).toMatchObject({ taskId: failed.taskId, status: "FAILED", retried: true, reasonForIncompletion: "once" });
  expect(fresh).toMatchObject({ taskId: again.taskId, retried: false, startDelayInSeconds: 2 });
});

it("[C36] completes after three failures, and still lists the task as failed", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t2", retryCount: 3, retryDelaySeconds: 0 });
  const id = await c.begin([simple("t1"), simple("t2")]);
  await c.work("t1");
  for (let failures = 0; failures < 3; failures++) await c.work("t2", { status: "FAILED", reason: "no" });
  await c.work("t2");
  const run = await c.run(id);
  expect(run).toMatchObject({ status: "COMPLETED", failedReferenceTaskNames: ["t2"] });
  expect(run.tasks.map(({ status, retryCount, seq }) => [status, retryCount, seq])).toEqual([
    ["COMPLETED", 0, 1],
    ["FAILED", 0, 2],
    ["FAILED", 1, 3],
    ["FAILED", 2, 4],
    ["COMPLETED", 3, 5],
  ]);
});

it("[C37] ends the attempt of a silent worker and schedules another one", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 1, retryDelaySeconds: 0, responseTimeoutSeconds: 10 });
  const id = await c.begin([simple("t")]);
  const held = await c.take("t");
  await c.clock.advance(10 * second - 1);
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(1);
  const [old, fresh] = (await c.run(id)).tasks;
  const reason = `responseTimeout: 10 exceeded for the taskId: ${held.taskId} with Task Definition: t`;
  expect(old).toMatchObject({ status: "TIMED_OUT", reasonForIncompletion: reason });
  expect(fresh).toMatchObject({ status: "SCHEDULED", retryCount: 1, retriedTaskId: held.taskId });
});

it("[C38] keeps a lease that is extended, and ends it within its length when the extensions stop", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 0, responseTimeoutSeconds: 2 });
  const id = await c.begin([simple("t")]);
  const held = await c.take("t");
  for (let at = 1; at <= 6; at++) {
    await c.clock.advance(second);
    await c.update(held, { extendLease: true, status: "FAILED", output: { ignored: true } });
  }
  expect(await c.record(id, "t")).toMatchObject({ status: "IN_PROGRESS", outputData: {} });
  await c.clock.advance(2 * second - 1);
  expect((await c.record(id, "t")).status).toBe("IN_PROGRESS");
  await c.clock.advance(1);
  expect((await c.record(id, "t")).status).toBe("TIMED_OUT");
  expect(await c.status(id)).toBe("TIMED_OUT");
});

it("[C39] hands out a deferred task again after the callback time, as the same attempt", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  const first = await c.work("t", { status: "IN_PROGRESS", callback: 2, output: { at: 1 } });
  expect(await c.record(id, "t")).toMatchObject({ status: "SCHEDULED", callbackAfterSeconds: 2, outputData: { at: 1 } });
  await c.clock.advance(2 * second - 1);
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(1);
  expect(await c.take("t")).toMatchObject({ taskId: first.taskId, pollCount: 2, retryCount: 0, callbackAfterSeconds: 0 });
});

it("[C40] hands out a task at once when its deferral has no delay", async () => {
  const c = await startConductor();
  await c.begin([simple("t")]);
  const first = await c.work("t", { status: "IN_PROGRESS", callback: 0 });
  expect(await c.take("t")).toMatchObject({ taskId: first.taskId, pollCount: 2 });
});

it("[C41] resets callback times on request", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  const first = await c.work("t", { status: "IN_PROGRESS", callback: 3600 });
  expect(await c.poll("t")).toBeUndefined();
  expect((await c.order("POST", id, "/resetcallbacks")).status).toBe(204);
  expect((await c.take("t")).taskId).toBe(first.taskId);
});

it("[C42] replaces the output with each update", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  await c.work("t", { status: "IN_PROGRESS", output: { a: 1 } });
  expect((await c.record(id, "t")).outputData).toEqual({ a: 1 });
  await c.work("t", { output: { b: 2 } });
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED", output: { b: 2 } });
  expect((await c.record(id, "t")).outputData).toEqual({ b: 2 });
});

it("[C43] retries a failed run under its own id, with a newly computed input", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t2", retryCount: 1, retryDelaySeconds: 0 });
  const id = await c.begin([simple("t1"), simple("t2", { inputParameters: { own: "${CPEWF_TASK_ID}" } })]);
  await c.work("t1");
  await c.work("t2", { status: "FAILED" });
  await c.work("t2", { status: "FAILED" });
  expect(await c.status(id)).toBe("FAILED");
  await c.clock.advance(second);
  expect((await c.order("POST", id, "/retry")).status).toBe(204);
  const again = await c.take("t2");
  expect(again).toMatchObject({ inputData: { own: again.taskId }, retryCount: 2, workflowInstanceId: id });
  expect(await c.run(id)).toMatchObject({ status: "RUNNING", lastRetriedTime: c.clock.now() });
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED", "t2:FAILED", "t2:FAILED", "t2:IN_PROGRESS"]);
  await c.update(again);
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C44] restarts a run that is not restartable only when it did not complete", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")], { restartable: false });
  await c.work("t", { status: "FAILED_WITH_TERMINAL_ERROR" });
  expect((await c.order("POST", id, "/restart")).status).toBe(204);
  await c.work("t");
  expect(await c.status(id)).toBe("COMPLETED");
  expect((await c.order("POST", id, "/restart")).status).toBe(404);
});

it("[C45] restarts with the same definition, or with the latest on request", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2")]);
  await c.work("t1");
  await c.work("t2", { status: "FAILED_WITH_TERMINAL_ERROR" });
  await c.workflow({ name: "w", version: 2, tasks: [simple("t1"), simple("t2"), simple("t3")] });
  await c.order("POST", id, "/restart");
  await c.work("t1");
  await c.work("t2");
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED", workflowVersion: 1 });
  await c.order("POST", id, "/restart?useLatestDefinitions=true");
  await c.work("t1");
  await c.work("t2");
  expect(await c.run(id)).toMatchObject({ status: "RUNNING", workflowVersion: 2 });
  await c.work("t3");
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED", "t2:COMPLETED", "t3:COMPLETED"]);
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C46] runs an undefined task, by Conductor's defaults", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("nobody_defined")]);
  expect(await c.record(id, "nobody_defined")).toMatchObject({ status: "SCHEDULED", responseTimeoutSeconds: 3600 });
  await c.work("nobody_defined", { status: "FAILED" });
  expect(await c.record(id, "nobody_defined")).toMatchObject({ status: "SCHEDULED", retryCount: 1, callbackAfterSeconds: 60 });
});

it("[C47] completes an inline definition without tasks at once", async () => {
  const c = await startConductor();
  const id = await c.start("empty", { workflowDef: { name: "empty", tasks: [] } });
  const run = await c.run(id);
  expect(run.status).toBe("COMPLETED");
  expect(run.tasks).toEqual([]);
});

it("[C48] uses the task definition's value for an input that is null or absent", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", inputTemplate: { a: 1 } });
  for (const [inputParameters, expected] of [
    [{ a: "${workflow.input.nothing}" }, 1],
    [{ a: 2 }, 2],
    [{}, 1],
  ] as const) {
    await c.begin([simple("t", { inputParameters })]);
    expect((await c.work("t")).inputData).toEqual({ a: expected });
  }
});

it("[C49] doubles the delay up to its cap", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 3, retryLogic: "EXPONENTIAL_BACKOFF", retryDelaySeconds: 2, maxRetryDelaySeconds: 3 });
  const id = await c.begin([simple("t")]);
  await c.work("t", { status: "FAILED" });
  expect((await c.record(id, "t")).callbackAfterSeconds).toBe(2);
  await c.clock.advance(2 * second);
  await c.work("t", { status: "FAILED" });
  expect((await c.record(id, "t")).callbackAfterSeconds).toBe(3);
  await c.clock.advance(3 * second - 1);
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(1);
  expect(await c.poll("t")).toBeDefined();
});

it("[C50] increases the delay by the same amount each time, up to its cap", async () => {
  const c = await startConductor();
  const delays = { retryLogic: "LINEAR_BACKOFF", retryDelaySeconds: 2, backoffScaleFactor: 2, maxRetryDelaySeconds: 5 };
  await c.taskDef({ name: "t", retryCount: 3, ...delays });
  const id = await c.begin([simple("t")]);
  await c.work("t", { status: "FAILED" });
  expect((await c.record(id, "t")).callbackAfterSeconds).toBe(4);
  await c.clock.advance(4 * second);
  await c.work("t", { status: "FAILED" });
  expect((await c.record(id, "t")).callbackAfterSeconds).toBe(5);
});

it("[C51] adds jitter to the capped delay, and shows the delay without it", async () => {
  const c = await startConductor();
  await c.taskDef(
    { name: "shaken", retryCount: 1, retryDelaySeconds: 60, backoffJitterMs: 5000 },
    { name: "capped", retryCount: 1, retryDelaySeconds: 600, maxRetryDelaySeconds: 60, backoffJitterMs: 5000 },
    { name: "exact", retryCount: 1, retryDelaySeconds: 60 },
  );
  for (const name of ["shaken", "capped", "exact"]) {
    const id = await c.begin([simple(name)]);
    await c.work(name, { status: "FAILED" });
    expect((await c.record(id, name)).callbackAfterSeconds).toBe(60);
    await c.clock.advance(60 * second - 1);
    expect(await c.poll(name)).toBeUndefined();
    await c.clock.advance(name === "exact" ? 1 : 5 * second + 1);
    expect(await c.poll(name)).toBeDefined();
  }
});

it("[C52] ends the run when the time for all attempts is over, also when attempts are left", async () => {
  const c = await startConductor();
  const budget = { retryCount: 10, retryDelaySeconds: 4, responseTimeoutSeconds: 5, timeoutSeconds: 5, timeoutPolicy: "RETRY" };
  await c.taskDef({ name: "t", ...budget, totalTimeoutSeconds: 10 }, { name: "free", ...budget, totalTimeoutSeconds: 0 });
  const id = await c.begin([simple("t")]);
  for (let tries = 0; tries < 2; tries++) {
    await c.work("t", { status: "FAILED" });
    await c.clock.advance(4 * second);
  }
  const held = await c.take("t");
  await c.clock.advance(2 * second - 1);
  expect(await c.status(id)).toBe("RUNNING");
  await c.clock.advance(1);
  expect(await c.run(id)).toMatchObject({ status: "TIMED_OUT" });
  expect(await c.record(id, "t")).toMatchObject({ taskId: held.taskId, status: "TIMED_OUT", retryCount: 2 });

  const unlimited = await c.begin([simple("free")]);
  for (let tries = 0; tries < 10; tries++) {
    await c.work("free", { status: "FAILED" });
    await c.clock.advance(4 * second);
  }
  await c.work("free");
  expect(await c.status(unlimited)).toBe("COMPLETED");
});

it("[C53] makes no more attempts after the whole time, also with the policy ALERT_ONLY", async () => {
  const c = await startConductor();
  const definition = { retryCount: 5, retryDelaySeconds: 0, totalTimeoutSeconds: 10, timeoutPolicy: "ALERT_ONLY" };
  await c.taskDef({ name: "t", ...definition });
  const id = await c.begin([simple("t")]);
  const held = await c.take("t");
  await c.clock.advance(11 * second);
  expect(await c.status(id)).toBe("RUNNING");
  await c.update(held, { status: "FAILED", reason: "late" });
  expect(await c.run(id)).toMatchObject({ status: "FAILED", failedReferenceTaskNames: ["t"] });
  expect(await c.statuses(id)).toEqual(["t:FAILED"]);
});

it("[C54] prefers the workflow's number of retries to that of the definition", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", retryCount: 5, retryDelaySeconds: 0 });
  const id = await c.begin([simple("t", { retryCount: 1 })]);
  await c.work("t", { status: "FAILED" });
  await c.work("t", { status: "FAILED" });
  expect(await c.status(id)).toBe("FAILED");
  const none = await c.begin([simple("t", { retryCount: 0 })]);
  await c.work("t", { status: "FAILED" });
  expect(await c.status(none)).toBe("FAILED");
});

it("a task that its worker completes after its run has failed is shown as cancelled before and after a retry", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "fails", retryCount: 0 });
  const fork = operator("FORK_JOIN", "fork", { forkTasks: [[simple("fails")], [simple("works")]] });
  const id = await c.begin([fork, operator("JOIN", "join", { joinOn: ["fails", "works"] })]);
  const late = await c.take("works");
  await c.work("fails", { status: "FAILED", reason: "no" });
  expect(await c.status(id)).toBe("FAILED");
  await c.update(late, { output: { x: 1 } });
  const shown = async () => (await c.run(id)).tasks.filter(({ taskDefName }) => taskDefName === "works");
  expect(await shown()).toMatchObject([{ taskId: late.taskId, status: "CANCELED", executed: false, retryCount: 0 }]);
  await c.order("POST", id, "/retry");
  const again = await c.take("works");
  expect(await shown()).toMatchObject([
    { taskId: late.taskId, status: "CANCELED", executed: false, retried: true, retryCount: 0 },
    { taskId: again.taskId, status: "IN_PROGRESS", retried: false, retryCount: 1, retriedTaskId: late.taskId },
  ]);
});
