import { expect, it } from "vitest";
import { startConductor } from "../../support/conductor-rest.ts";
import { simple } from "../../support/conductor-world.ts";

const second = 1_000;

it("never runs more tasks at the same time than the limit, for any number of polls", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", concurrentExecLimit: 3 });
  await c.workflow({ name: "w", tasks: [simple("t")] });
  const runs = 20;
  for (let at = 0; at < runs; at++) await c.start("w");
  let done = 0;
  while (done < runs) {
    const polls = Array.from({ length: 8 }, (_, at) => c.pollMany("t", 2, { worker: `w${at}` }));
    const tasks = (await Promise.all(polls)).flat();
    expect(tasks.length).toBe(Math.min(3, runs - done));
    expect(await c.poll("t")).toBeUndefined();
    for (const task of tasks) await c.update(task, { worker: task.workerId });
    done += tasks.length;
  }
});

it("counts a task against the limit only while a worker has it", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", concurrentExecLimit: 1, retryCount: 1, retryDelaySeconds: 60, responseTimeoutSeconds: 10 });
  await c.workflow({ name: "w", tasks: [simple("t")] });
  for (let at = 0; at < 4; at++) await c.start("w");
  await c.update(await c.take("t"), { status: "IN_PROGRESS", callback: 600 });
  await c.update(await c.take("t"), { status: "FAILED" });
  const silent = await c.take("t");
  expect(await c.poll("t")).toBeUndefined();
  await c.clock.advance(10 * second);
  await c.settle();
  const last = await c.take("t");
  expect(last.workflowInstanceId).not.toBe(silent.workflowInstanceId);
  expect(await c.poll("t")).toBeUndefined();
});

it("shares a limit among all workflows and domains of a task, but not with other tasks", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", concurrentExecLimit: 1 });
  await c.begin([simple("t")], { name: "a" });
  await c.begin([simple("t")], { name: "b", start: { taskToDomain: { t: "d" } } });
  await c.begin([simple("other")], { name: "c" });
  const first = await c.take("t");
  expect(await c.poll("t", { domain: "d" })).toBeUndefined();
  await c.take("other");
  await c.update(first);
  await c.take("t", { domain: "d" });
});

it("hands out exactly as many tasks in every window as the rate allows", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "t", rateLimitPerFrequency: 3, rateLimitFrequencyInSeconds: 5 });
  await c.workflow({ name: "w", tasks: [simple("t")] });
  for (let at = 0; at < 10; at++) await c.start("w");
  const handedOut: number[] = [];
  for (let half = 0; half < 30; half++) {
    for (const task of await c.pollMany("t", 10)) {
      handedOut.push(c.clock.now());
      await c.update(task);
    }
    await c.clock.advance(second / 2);
  }
  expect(handedOut).toHaveLength(9);
  for (const at of handedOut) expect(handedOut.filter((other) => other >= at && other < at + 5 * second).length).toBeLessThanOrEqual(3);
});

it("keeps both limits over a restart of the server", async () => {
  const c = await startConductor();
  await c.taskDef({ name: "few", concurrentExecLimit: 1 }, { name: "slow", rateLimitPerFrequency: 1, rateLimitFrequencyInSeconds: 60 });
  await c.workflow({ name: "w", tasks: [simple("few"), simple("slow")] });
  const first = await c.start("w");
  await c.start("w");
  await c.work("few");
  const held = await c.take("few");
  await c.work("slow");
  expect(await c.status(first)).toBe("COMPLETED");
  const third = await c.start("w");
  await c.close();
  const again = await startConductor({}, c);
  expect(await again.poll("few")).toBeUndefined();
  await again.update(held);
  expect((await again.take("few")).workflowInstanceId).toBe(third);
  expect(await again.poll("slow")).toBeUndefined();
  await again.clock.advance(60 * second);
  expect((await again.take("slow")).workflowInstanceId).toBe(held.workflowInstanceId);
});
