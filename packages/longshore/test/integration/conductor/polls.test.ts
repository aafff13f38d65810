import { connect } from "node:net";
import { expect, it } from "vitest";
import { type RestTask, startConductor } from "../../support/conductor-rest.ts";
import { simple } from "../../support/conductor-world.ts";
import { eventually } from "../../support/workflow-graph.ts";

it("[C30] gives a task to a waiting poll as soon as it is scheduled, without a delay", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const polled = c.send("GET", "/tasks/poll/batch/t?workerid=w1&count=5&timeout=3000");
  await c.clock.armed(3_000);
  await c.clock.advance(500);
  const id = await c.start("w");
  const tasks = JSON.parse((await polled).text) as RestTask[];
  expect(tasks.map(({ workflowInstanceId }) => workflowInstanceId)).toEqual([id]);
  expect(tasks[0]?.startTime).toBe(tasks[0]?.scheduledTime);
});

it("[C31] never gives one task to two pollers, in a thousand races", async () => {
  const c = await startConductor({ ephemeral: true });
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const handed: string[] = [];
  const races = 1_000;
  const pollOnce = async (worker: string) => {
    for (const task of await c.pollMany("t", 2, { worker })) handed.push(task.taskId);
  };
  for (let race = 0; race < races; race++) {
    await Promise.all([c.ask("POST", "/workflow", { name: "w" }), pollOnce("a"), pollOnce("b")]);
  }
  // Tasks that were started after both had polled.
  await Promise.all([pollOnce("a"), pollOnce("b")]);
  for (let last = await c.poll("t"); last !== undefined; last = await c.poll("t")) handed.push(last.taskId);
  expect(handed).toHaveLength(races);
  expect(new Set(handed).size).toBe(races);
});

it("[C32] gives a task to another worker when its poller disconnected before it read the response", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", responseTimeoutSeconds: 10, retryDelaySeconds: 0 });
  const id = await c.begin([simple("t")]);
  const { hostname, port } = new URL(c.url);
  const socket = connect(Number(port), hostname).pause();
  socket.write("GET /api/tasks/poll/batch/t?workerid=gone&timeout=0 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
  await eventually(async () => (await c.record(id, "t")).status === "IN_PROGRESS");
  socket.resetAndDestroy();
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(10_000);
  await c.settle();
  const task = await c.take("t", { worker: "alive" });
  expect(task.retryCount).toBe(1);
  await c.update(task, { worker: "alive" });
  expect([await c.status(id), await c.statuses(id)]).toEqual(["COMPLETED", ["t:TIMED_OUT", "t:COMPLETED"]]);
});

it("hands out tasks with the larger priority first, and older tasks first among equal ones", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const low = await c.start("w", { priority: 1 });
  const none = await c.start("w");
  const high = await c.start("w", { priority: 99 });
  const later = await c.start("w", { priority: 99 });
  const order = (await c.pollMany("t", 10)).map(({ workflowInstanceId }) => workflowInstanceId);
  expect(order).toEqual([high, later, low, none]);
});

it("responds to a batch poll by POST as by GET, and hands out no more than requested", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("t")] });
  for (let at = 0; at < 3; at++) await c.start("w");
  const answer = await c.send("POST", "/tasks/poll/batch/t?workerid=w1&count=2&timeout=0");
  expect((JSON.parse(answer.text) as RestTask[]).map(({ status }) => status)).toEqual(["IN_PROGRESS", "IN_PROGRESS"]);
  expect(await c.pollMany("t", 5)).toHaveLength(1);
});
