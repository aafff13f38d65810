import { expect, it } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { fork, operator, simple } from "../../support/conductor-world.ts";

const second = 1_000;

it("applies the events of a pause in order when the run is resumed", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "flaky", retryCount: 2, retryDelaySeconds: 5 }, { name: "soft", retryCount: 0 });
  const branches = [[simple("a"), simple("after_a")], [simple("flaky")], [simple("soft", { optional: true }), simple("after_soft")]];
  const id = await c.begin([...fork("f", branches, ["after_a", "flaky", "after_soft"]), simple("last")]);
  const [a, flaky, soft] = [await c.take("a"), await c.take("flaky"), await c.take("soft")];
  expect((await c.order("PUT", id, "/pause")).status).toBe(200);
  expect((await c.order("PUT", id, "/pause")).status).toBe(200);
  await c.update(a, { output: { n: 1 } });
  await c.update(flaky, { status: "FAILED", reason: "once" });
  await c.update(soft, { status: "FAILED", reason: "never mind" });
  await c.clock.advance(60 * second);
  await c.order("PUT", `decide/${id}`, "");
  expect(await c.status(id)).toBe("PAUSED");
  for (const type of ["after_a", "flaky", "after_soft"]) expect(await c.poll(type)).toBeUndefined();
  expect((await c.order("PUT", id, "/resume")).status).toBe(200);
  expect(await c.status(id)).toBe("RUNNING");
  expect((await c.record(id, "a")).outputData).toEqual({ n: 1 });
  expect((await c.record(id, "soft")).status).toBe("COMPLETED_WITH_ERRORS");
  expect(await c.record(id, "flaky")).toMatchObject({ status: "SCHEDULED", retryCount: 1 });
  await c.clock.advance(5 * second);
  for (const type of ["after_a", "flaky", "after_soft", "last"]) await c.work(type);
  expect(await c.status(id)).toBe("COMPLETED");
});

it("hands out no new task of a paused run, also after a restart, and hands out its tasks after the resume", async () => {
  const c = await startConductor();
  const id = await c.begin([...fork("f", [[simple("a"), simple("b")], [simple("d")]], ["b", "d"])]);
  await c.order("PUT", id, "/pause");
  const a = await c.take("a");
  await c.update(a);
  await c.close();
  const again = await startConductor({}, c);
  expect(await again.status(id)).toBe("PAUSED");
  expect(await again.poll("b")).toBeUndefined();
  await again.order("PUT", id, "/resume");
  await again.work("b");
  await again.work("d");
  expect(await again.status(id)).toBe("COMPLETED");
});

it("ends a paused run that is terminated, with the tasks that workers hold", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("a"), simple("b")]);
  const held = await c.take("a");
  await c.order("PUT", id, "/pause");
  await c.order("DELETE", id, "?reason=stop");
  expect(await c.run(id)).toMatchObject({ status: "TERMINATED", reasonForIncompletion: "stop" });
  await c.update(held);
  expect(await c.statuses(id)).toEqual(["a:CANCELED"]);
  expect((await c.order("PUT", id, "/resume")).status).toBe(409);
});

it("[C-LEASE-07] shows a worker that its task is cancelled, and accepts its result without using it", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("a"), simple("b")]);
  const held = await c.take("a");
  await c.order("DELETE", id, "?reason=stop");
  expect(await c.read(`/tasks/${held.taskId}`)).toMatchObject({ status: "CANCELED" });
  expect(await c.send("POST", "/tasks", c.resultOf(held, { output: { late: 1 } }))).toMatchObject({ status: 200, text: held.taskId });
  expect((await c.send("POST", "/tasks/update-v2", c.resultOf(held))).status).toBe(204);
  expect((await c.send("POST", "/tasks", c.resultOf(held, { extendLease: true }))).status).toBe(200);
  expect(await c.statuses(id)).toEqual(["a:CANCELED"]);
  expect(await c.status(id)).toBe("TERMINATED");
});

it("continues after a skipped task with the given output", async () => {
  const c = await startConductor();
  const after = simple("t3", { inputParameters: { from: "${t2.output.x}" } });
  const id = await c.begin([simple("t1"), simple("t2"), after]);
  const given = { taskInput: { asked: 1 }, taskOutput: { x: 2 } };
  expect((await c.order("PUT", id, "/skiptask/t2", given)).status).toBe(200);
  expect((await c.order("PUT", id, "/skiptask/t1", given)).status).toBe(409);
  expect((await c.order("PUT", id, "/skiptask/t2", given)).status).toBe(409);
  expect((await c.order("PUT", id, "/skiptask/nobody", given)).status).toBe(400);
  expect(await c.record(id, "t2")).toMatchObject({ status: "SKIPPED", inputData: { asked: 1 }, outputData: { x: 2 }, seq: 0 });
  await c.work("t1");
  expect((await c.work("t3")).inputData).toEqual({ from: 2 });
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED" });
});

it("skips tasks inside forks and switches, and keeps them skipped when the run is retried", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "bad", retryCount: 0 });
  const id = await c.begin([simple("first"), ...fork("f", [[simple("x"), simple("y")], [simple("bad")]], ["y", "bad"]), simple("last")]);
  await c.order("PUT", id, "/skiptask/x");
  await c.order("PUT", id, "/skiptask/y", { taskOutput: { skipped: true } });
  await c.work("first");
  await c.work("bad", { status: "FAILED" });
  expect(await c.status(id)).toBe("FAILED");
  await c.order("POST", id, "/retry");
  expect(await c.poll("x")).toBeUndefined();
  await c.work("bad");
  await c.work("last");
  expect((await c.record(id, "f_join")).outputData).toEqual({ y: { skipped: true } });
  expect(await c.status(id)).toBe("COMPLETED");
});

it("reruns a completed run from any of its tasks, or from its beginning with another input", async () => {
  const c = await startConductor();
  const tasks = [simple("t1", { inputParameters: { a: "${workflow.input.a}" } }), simple("t2"), simple("t3")];
  const id = await c.begin(tasks, { outputParameters: { last: "${t3.output.n}" }, start: { input: { a: 1 } } });
  for (const type of ["t1", "t2", "t3"]) await c.work(type, { output: { n: type } });
  const reRunFromTaskId = (await c.record(id, "t2")).taskId;
  expect((await c.order("POST", id, "/rerun", { reRunFromTaskId, taskInput: { new: true } })).text).toBe(id);
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED", "t2:SCHEDULED"]);
  expect((await c.order("POST", id, "/rerun", {})).status).toBe(409);
  expect((await c.work("t2")).inputData).toEqual({ new: true });
  await c.work("t3", { output: { n: "again" } });
  expect(await c.run(id)).toMatchObject({ status: "COMPLETED", output: { last: "again" } });
  expect((await c.order("POST", id, "/rerun", { reRunFromTaskId: "nobody.0.0" })).status).toBe(400);

  await c.order("POST", id, "/rerun", { workflowInput: { a: 2 }, correlationId: "new" });
  expect(await c.run(id)).toMatchObject({ status: "RUNNING", input: { a: 2 }, correlationId: "new" });
  expect((await c.work("t1")).inputData).toEqual({ a: 2 });
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED", "t2:SCHEDULED"]);
});

it("changes the input and correlation id of a run when it is rerun from a task", async () => {
  const c = await startConductor();
  const tasks = [simple("t1"), simple("t2"), simple("t3", { inputParameters: { a: "${workflow.input.a}" } })];
  const id = await c.begin(tasks, { start: { input: { a: 1 }, correlationId: "old" } });
  for (const type of ["t1", "t2", "t3"]) await c.work(type);
  const reRunFromTaskId = (await c.record(id, "t2")).taskId;
  await c.order("POST", id, "/rerun", { reRunFromTaskId, workflowInput: { a: 2 }, correlationId: "new" });
  expect(await c.run(id)).toMatchObject({ status: "RUNNING", input: { a: 2 }, correlationId: "new" });
  await c.work("t2");
  expect((await c.work("t3")).inputData).toEqual({ a: 2 });
});

it("refuses a rerun from a task that has not begun, and from an attempt that does not exist", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2")]);
  const { taskId } = await c.record(id, "t1");
  await c.order("DELETE", id, "");
  await c.settle();
  const never = [taskId.replace(/0\.0$/, "1.0"), taskId.replace(/0$/, "7"), taskId.replace(/0\.0$/, "99.0")];
  for (const reRunFromTaskId of never) expect((await c.order("POST", id, "/rerun", { reRunFromTaskId })).status).toBe(400);
  expect(await c.status(id)).toBe("TERMINATED");
});

it("restarts a run with the definition's variables", async () => {
  const c = await startConductor();
  const set = operator("SET_VARIABLE", "set", { inputParameters: { n: "${workflow.input.n}" } });
  const seen = simple("t", { inputParameters: { n: "${workflow.variables.n}", kept: "${workflow.variables.kept}" } });
  const id = await c.begin([seen, set, simple("u")], { variables: { n: 0, kept: 1 }, start: { input: { n: 5 } } });
  await c.work("t");
  await c.work("u", { status: "FAILED_WITH_TERMINAL_ERROR" });
  expect((await c.run(id)).variables).toEqual({ n: 5, kept: 1 });
  await c.order("POST", id, "/restart");
  expect((await c.run(id)).variables).toEqual({ n: 0, kept: 1 });
  expect((await c.take("t")).inputData).toEqual({ n: 0, kept: 1 });
});

it("retries a timed-out run from its last task, with a new time limit", async () => {
  const c = await startConductor();
  const id = await c.begin([simple("t1"), simple("t2")], { timeoutSeconds: 10, timeoutPolicy: "TIME_OUT_WF" });
  await c.work("t1");
  await c.clock.advance(10 * second);
  expect(await c.run(id)).toMatchObject({ status: "TIMED_OUT" });
  expect(await c.statuses(id)).toEqual(["t1:COMPLETED", "t2:CANCELED"]);
  await c.clock.advance(100 * second);
  await c.order("POST", id, "/retry");
  await c.clock.advance(9 * second);
  expect(await c.status(id)).toBe("RUNNING");
  await c.work("t2");
  expect(await c.status(id)).toBe("COMPLETED");
});
