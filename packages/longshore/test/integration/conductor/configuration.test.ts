import { expect, it } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { operator, simple } from "../../support/conductor-world.ts";

const second = 1_000;

it("[C55] continues after an optional task whose retries all failed", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t1", retryCount: 1, retryDelaySeconds: 0 });
  const id = await c.begin([simple("t1", { optional: true }), simple("t2")]);
  await c.work("t1", { status: "FAILED", reason: "no" });
  await c.work("t1", { status: "FAILED", reason: "no" });
  expect(await c.statuses(id)).toEqual(["t1:FAILED", "t1:COMPLETED_WITH_ERRORS", "t2:SCHEDULED"]);
  await c.work("t2");
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C56] continues to the end after a failed permissive task, and then fails", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t1", retryCount: 0 });
  const id = await c.begin([simple("t1", { permissive: true }), simple("t2")]);
  const failed = await c.work("t1", { status: "FAILED", reason: "no" });
  await c.work("t2");
  const reason = `Task ${failed.taskId} failed with status: FAILED and reason: 'no'`;
  expect(await c.run(id)).toMatchObject({ status: "FAILED", reasonForIncompletion: reason });
  expect(await c.statuses(id)).toEqual(["t1:FAILED", "t2:COMPLETED"]);
});

it("[C57] treats a task that is both permissive and optional as optional", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t1", retryCount: 0 });
  const id = await c.begin([simple("t1", { permissive: true, optional: true }), simple("t2")]);
  await c.work("t1", { status: "FAILED" });
  await c.work("t2");
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED_WITH_ERRORS", "t2:COMPLETED"]);
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C58] retries a task that timed out, until the run times out", async () => {
  const c = await startConductor();
  const times = { timeoutSeconds: 1, responseTimeoutSeconds: 1, timeoutPolicy: "RETRY", retryCount: 1, retryDelaySeconds: 0 };
  await c.taskDef({ name: "t", ...times });
  const id = await c.begin([simple("t")]);
  for (let tries = 0; tries < 2; tries++) {
    await c.take("t");
    await c.clock.advance(second);
    await c.settle();
  }
  expect(await c.statuses(id)).toEqual(["t:TIMED_OUT", "t:TIMED_OUT"]);
  expect(await c.status(id)).toBe("TIMED_OUT");
});

it("[C59] ends the run with a timed-out task when the policy requires it", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", timeoutSeconds: 1, responseTimeoutSeconds: 1, timeoutPolicy: "TIME_OUT_WF", retryCount: 5 });
  const id = await c.begin([simple("t")]);
  await c.take("t");
  await c.clock.advance(second);
  await c.settle();
  expect([await c.status(id), await c.statuses(id)]).toEqual(["TIMED_OUT", ["t:TIMED_OUT"]]);
});

it("[C60] ends the run when no worker polls a task in time", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", pollTimeoutSeconds: 5, timeoutPolicy: "TIME_OUT_WF" });
  const id = await c.begin([simple("t")]);
  await c.clock.advance(5 * second - 1);
  expect(await c.status(id)).toBe("RUNNING");
  await c.clock.advance(1);
  await c.settle();
  expect(await c.status(id)).toBe("TIMED_OUT");
});

it("shows the poll timeout of an attempt that no worker polled, also when another attempt follows", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", pollTimeoutSeconds: 5, timeoutPolicy: "RETRY", retryCount: 1, retryDelaySeconds: 0 });
  const id = await c.begin([simple("t")]);
  for (let tries = 0; tries < 2; tries++) {
    await c.clock.advance(5 * second);
    await c.settle();
  }
  const reason = "Task poll timed out after 5 seconds. Poll timeout configured as 5 seconds. Timeout policy configured to RETRY";
  const { tasks } = (await c.run(id)) as { tasks: { status: string; reasonForIncompletion: string }[] };
  expect(tasks.map(({ status, reasonForIncompletion }) => [status, reasonForIncompletion])).toEqual([
    ["TIMED_OUT", reason],
    ["TIMED_OUT", reason],
  ]);
});

it("[C61] ends a run that takes too long, and counts its time again when it is retried", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")], { timeoutSeconds: 5, timeoutPolicy: "TIME_OUT_WF" });
  await c.clock.advance(5 * second);
  await c.settle();
  expect(await c.run(id)).toMatchObject({ status: "TIMED_OUT", tasks: [{ status: "CANCELED" }] });
  await c.clock.advance(second);
  expect((await c.order("POST", id, "/retry")).status).toBe(204);
  expect(await c.run(id)).toMatchObject({ status: "RUNNING", lastRetriedTime: c.clock.now() });
  await c.clock.advance(5 * second - 1);
  expect(await c.status(id)).toBe("RUNNING");
  await c.clock.advance(1);
  await c.settle();
  expect(await c.status(id)).toBe("TIMED_OUT");
});

it("[C62] can continue a run that timed out between its tasks", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2")], { timeoutSeconds: 5, timeoutPolicy: "TIME_OUT_WF" });
  const first = await c.work("t1", { output: { kept: true } });
  await c.clock.advance(5 * second);
  await c.settle();
  expect(await c.status(id)).toBe("TIMED_OUT");
  await c.order("POST", id, "/retry");
  const [kept] = (await c.run(id)).tasks;
  expect(kept).toMatchObject({ taskId: first.taskId, status: "COMPLETED", outputData: { kept: true } });
  await c.work("t2");
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C63] runs a run again from its beginning, or from one task with another input", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2", { inputParameters: { old: true } })]);
  await c.work("t1", { output: { kept: true } });
  await c.work("t2");
  const second = await c.record(id, "t2");
  const from = { reRunFromTaskId: second.taskId, taskInput: { given: 1 } };
  expect(await c.order("POST", id, "/rerun", from)).toMatchObject({ status: 200, text: id });
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED", "t2:SCHEDULED"]);
  expect((await c.work("t2")).inputData).toEqual({ given: 1 });
  expect(await c.status(id)).toBe("COMPLETED");
  expect((await c.order("POST", id, "/rerun", { workflowInput: { again: true } })).text).toBe(id);
  expect(await c.run(id)).toMatchObject({ status: "RUNNING", input: { again: true } });
  expect(await c.statuses(id)).toEqual(["t1:SCHEDULED"]);
});

it("[C64] skips a task that has not begun", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2"), simple("t3")]);
  expect((await c.order("PUT", id, "/skiptask/t2", { taskOutput: { skipped: true } })).status).toBe(200);
  expect(await c.record(id, "t2")).toMatchObject({ status: "SKIPPED", seq: 0 });
  await c.work("t1");
  await c.work("t3");
  expect(await c.statuses(id)).toEqual(["t2:SKIPPED", "t1:COMPLETED", "t3:COMPLETED"]);
  expect(await c.status(id)).toBe("COMPLETED");
});

it("[C65] schedules nothing new while a run is paused, and still accepts reports", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2")]);
  const task = await c.take("t1");
  await c.order("PUT", id, "/pause");
  await c.update(task);
  await c.ask("PUT", `/workflow/decide/${id}`);
  expect([await c.status(id), await c.statuses(id)]).toEqual(["PAUSED", ["t1:COMPLETED"]]);
  await c.order("PUT", id, "/resume");
  expect([await c.status(id), await c.statuses(id)]).toEqual(["RUNNING", ["t1:COMPLETED", "t2:SCHEDULED"]]);
});

it("[C66] refuses to resume a run that is not paused", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  expect((await c.order("PUT", id, "/resume")).status).toBe(409);
});

it("[C67] does not exceed the limit of concurrent tasks, and hands out the next as soon as one has ended", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", concurrentExecLimit: 1 });
  await c.begin([simple("t")]);
  const waiting = await c.start("w");
  const first = await c.take("t");
  expect(await c.poll("t")).toBeUndefined();
  const polled = c.send("GET", "/tasks/poll/batch/t?workerid=w2&timeout=5000");
  await c.clock.armed(5_000);
  await c.update(first);
  expect(JSON.parse((await polled).text)).toMatchObject([{ workflowInstanceId: waiting }]);
});

it("[C68] does not exceed the rate, and hands out the next task when the window opens", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", rateLimitPerFrequency: 1, rateLimitFrequencyInSeconds: 10 });
  await c.begin([simple("t")]);
  await c.start("w");
  await c.work("t");
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(10 * second - 1);
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(1);
  await c.take("t");
});

it("[C69] never hands out a task of a terminated run, at any priority", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const urgent = await c.start("w", { priority: 99 });
  const other = await c.start("w", { priority: 1 });
  await c.order("DELETE", urgent, "");
  expect((await c.pollMany("t", 5)).map(({ workflowInstanceId }) => workflowInstanceId)).toEqual([other]);
});

it("[C70] hands out a task with a start delay only after the delay", async () => {
  const c = await startConductor();
  await c.begin([simple("t", { startDelay: 3 })]);
  await c.clock.advance(3 * second - 1);
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(1);
  await c.take("t");
});

it("[C71] sends a task to a domain that polled within the last ten seconds, else to none", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("t1")] });
  const start = () => c.start("w", { taskToDomain: { t1: "d1,NO_DOMAIN" } });
  expect((await c.record(await start(), "t1")).domain).toBeUndefined();
  await c.take("t1");
  await c.poll("t1", { domain: "d1" });
  await c.clock.advance(10 * second - 1);
  const id = await start();
  expect((await c.record(id, "t1")).domain).toBe("d1");
  expect(await c.poll("t1")).toBeUndefined();
  expect(await c.take("t1", { domain: "d1" })).toMatchObject({ workflowInstanceId: id, domain: "d1" });
  await c.clock.advance(10 * second + 1);
  expect((await c.record(await start(), "t1")).domain).toBeUndefined();
});

it("[C72] sends no operator to a domain", async () => {
  const c = await startConductor();
  const id = await c.begin([operator("WAIT", "wait"), simple("t")], { start: { taskToDomain: { "*": "d" } } });
  expect((await c.record(id, "wait")).domain).toBeUndefined();
  await c.signal(id, "wait");
  expect((await c.record(id, "t")).domain).toBe("d");
});

it("[C73] permanently fails a task whose output is too large to store", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t")]);
  await c.work("t", { output: { much: "x".repeat(10_240 * 1_024 + 1) } });
  expect(await c.run(id)).toMatchObject({ status: "FAILED", tasks: [{ status: "FAILED_WITH_TERMINAL_ERROR", outputData: {} }] });
  expect((await c.record(id, "t")).reasonForIncompletion).toContain("is greater than the permissible limit");
});
