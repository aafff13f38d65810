// Conductor's scheduler API on the schedules of this server.

import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../../support/conductor-rest.ts";
import { simple } from "../../support/conductor-world.ts";

const put = (c: ConductorServer, schedule: object) => c.ask("POST", "/scheduler/schedules", schedule).then((text) => JSON.parse(text));
const runsOf = async (c: ConductorServer, correlation: string) => {
  const query = encodeURIComponent(`correlationId=${correlation}`);
  return (await c.read<{ results: { workflowId: string }[] }>(`/workflow/search?query=${query}&sort=startTime:ASC`)).results;
};

/** Moves the clock second by second, so that each tick starts at its time. */
async function seconds(c: ConductorServer, count: number): Promise<void> {
  for (let at = 0; at < count; at++) {
    await c.clock.advance(1_000);
    await c.settle();
  }
}

it("starts runs with the settings of the request, at seconds, and tells each run about its tick", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", version: 1, tasks: [simple("old")] });
  await c.workflow({ name: "w", version: 2, tasks: [simple("new")] });
  await put(c, {
    name: "often",
    cronExpression: "*/10 * * * * *",
    startWorkflowRequest: { name: "w", version: 1, correlationId: "c", priority: 7, input: { a: 1 }, taskToDomain: { "*": "d" } },
  });
  const begun = c.clock.now();
  await seconds(c, 20);
  const [first, second, ...rest] = await runsOf(c, "c");
  expect(rest).toEqual([]);
  expect(await c.run(second?.workflowId as string)).toMatchObject({ workflowVersion: 1, status: "RUNNING" });
  const run = await c.run(first?.workflowId as string);
  const tick = Math.ceil((begun + 1) / 10_000) * 10_000;
  expect(run).toMatchObject({ correlationId: "c", priority: 7, taskToDomain: { "*": "d" }, workflowVersion: 1 });
  expect(run.input).toEqual({
    ...{ a: 1, _startedByScheduler: "often", _schedulerCron: "*/10 * * * * * UTC" },
    ...{ _scheduledTime: tick, _executedTime: expect.any(Number), _executionId: run.workflowId },
  });
  expect(await c.poll("old", { domain: "d" })).toMatchObject({ referenceTaskName: "old" });
  const { totalHits, results } = await c.read<{ totalHits: number; results: object[] }>(
    "/scheduler/search/executions?size=1&query=state%3DEXECUTED",
  );
  expect([totalHits, results[0]]).toMatchObject([
    2,
    { scheduleName: "often", workflowId: second?.workflowId, scheduledTime: tick + 10_000 },
  ]);
});

it("starts the newest version, and the task definitions of the time of the start", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", version: 1, tasks: [simple("one")] });
  await put(c, { name: "s", cronExpression: "* * * * * *", startWorkflowRequest: { name: "w", correlationId: "c" } });
  await seconds(c, 1);
  await c.workflow({ name: "w", version: 2, tasks: [simple("two")] });
  await c.taskDef({ name: "two", retryCount: 1, responseTimeoutSeconds: 77 });
  await seconds(c, 1);
  const ids = (await runsOf(c, "c")).map(({ workflowId }) => workflowId);
  expect(ids).toHaveLength(2);
  expect(await c.run(ids[0] as string)).toMatchObject({ workflowVersion: 1, tasks: [{ referenceTaskName: "one" }] });
  expect(await c.run(ids[1] as string)).toMatchObject({
    workflowVersion: 2,
    tasks: [{ referenceTaskName: "two", responseTimeoutSeconds: 77 }],
  });
});

it("keeps to its range of time and to all of its expressions, starts nothing while it is paused, and survives a restart", async () => {
  const first = await startConductor();
  await first.workflow({ name: "w", tasks: [simple("one")] });
  const from = Math.ceil(first.clock.now() / 60_000) * 60_000 + 60_000;
  await put(first, {
    name: "s",
    cronSchedules: [{ cronExpression: "0 * * * * *" }, { cronExpression: "30 * * * * *", zoneId: "Europe/Berlin" }],
    scheduleStartTime: from,
    scheduleEndTime: from + 60_000,
    startWorkflowRequest: { name: "w", correlationId: "c" },
  });
  await first.clock.advance(from - first.clock.now());
  await first.settle();
  expect(await runsOf(first, "c")).toHaveLength(1);
  await first.close();
  const c = await startConductor({}, first);
  await c.clock.advance(30_000);
  await c.settle();
  expect(await runsOf(c, "c")).toHaveLength(2);
  await c.ask("PUT", "/scheduler/schedules/s/pause?reason=why");
  expect(await c.read("/scheduler/schedules/s")).toMatchObject({ paused: true, pausedReason: "why" });
  await c.clock.advance(20_000);
  await c.ask("PUT", "/scheduler/schedules/s/resume");
  await c.clock.advance(600_000);
  await c.settle();
  // The time at the end of the range is the last one.
  expect(await runsOf(c, "c")).toHaveLength(3);
});

it("is changed by this API only, and shows the schedules of others", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("one")] });
  await put(c, { name: "s", cronExpression: "0 0 3 * * *", startWorkflowRequest: { name: "w" } });
  const own = (name: string) =>
    fetch(`${c.url}/api/longshore/v1/schedules/${name}`, { method: "PUT", body: JSON.stringify({ workflow: "w", cron: "0 3 * * *" }) });
  expect((await own("s")).status).toBe(409);
  expect((await own("other")).status).toBe(201);
  expect(await c.read("/scheduler/schedules")).toMatchObject([{ name: "other", cronExpression: "0 0 3 * * *" }, { name: "s" }]);
});

it("names the mistake in a schedule", async () => {
  const c = await startConductor();
  await c.workflow({ name: "w", tasks: [simple("one")] });
  const refused = async (more: object) => {
    const body = { name: "s", cronExpression: "0 0 3 * * *", startWorkflowRequest: { name: "w" }, ...more };
    const { status, text } = await c.send("POST", "/scheduler/schedules", body);
    return `${status} ${JSON.parse(text).message}`;
  };
  expect(await refused({ cronExpression: "0 3 * * *" })).toContain('400 cronExpression is "0 3 * * *", expected six fields');
  expect(await refused({ cronSchedules: [{ cronExpression: "99 * * * * *" }] })).toContain("400 cron is");
  expect(await refused({ cronSchedules: Array.from({ length: 21 }, () => ({ cronExpression: "0 0 3 * * *" })) })).toContain(
    "expected 1 to 20",
  );
  expect(await refused({ zoneId: "Nowhere/At-all" })).toContain("400 timezone is");
  expect(await refused({ startWorkflowRequest: { name: "absent" } })).toContain("404 No such workflow defined");
  expect(await refused({ scheduleEndTime: 1 })).toContain("400");
  expect(await refused({ startWorkflowRequest: { workflowDef: { name: "x", tasks: [] } } })).toContain(
    "a schedule starts a stored workflow",
  );
});
