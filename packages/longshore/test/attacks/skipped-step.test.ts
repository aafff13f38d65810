// An operator skips a step of a run that has not reached it. The run fails before that step and is retried. The mark that the step is skipped
// was kept, but the step's record was not. So at the end of the run every report got 500, and the run never ended.

import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";

/** A run whose last step is skipped and whose first has failed. */
async function failedBeforeTheSkipped(c: ConductorServer): Promise<string> {
  await c.taskDef({ name: "first_task", retryCount: 0 }, { name: "second_task", retryCount: 0 }, { name: "last_task", retryCount: 0 });
  const run = await c.begin([simple("first_task"), simple("second_task"), simple("last_task")]);
  await c.ask("PUT", `/workflow/${run}/skiptask/last_task`, {});
  await c.update(await c.take("first_task"), { status: "FAILED" });
  await c.settle();
  expect((await c.run(run)).status).toBe("FAILED");
  return run;
}

it.each([
  ["retried", (c: ConductorServer, run: string) => c.ask("POST", `/workflow/${run}/retry`)],
  ["rerun as a whole", (c: ConductorServer, run: string) => c.ask("POST", `/workflow/${run}/rerun`, {})],
  ["restarted", (c: ConductorServer, run: string) => c.ask("POST", `/workflow/${run}/restart`)],
])("a run with a skipped step ends after it was %s", async (how, again) => {
  const c = await startConductor();
  const run = await failedBeforeTheSkipped(c);
  await again(c, run);
  await c.update(await c.take("first_task"));
  await c.update(await c.take("second_task"));
  if (how !== "retried") await c.update(await c.take("last_task"));
  await c.settle();
  const { status, tasks } = await c.run(run);
  expect(status).toBe("COMPLETED");
  expect(tasks.map((task) => `${task.referenceTaskName} ${task.status}`)).toContain(
    `last_task ${how !== "retried" ? "COMPLETED" : "SKIPPED"}`,
  );
});

it("a skipped step runs when the run is rerun from it", async () => {
  const c = await startConductor();
  const run = await failedBeforeTheSkipped(c);
  await c.ask("POST", `/workflow/${run}/retry`);
  await c.update(await c.take("first_task"));
  await c.update(await c.take("second_task"));
  await c.settle();
  const skipped = (await c.run(run)).tasks.find((task) => task.referenceTaskName === "last_task");
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: skipped?.taskId });
  await c.update(await c.take("last_task"));
  await c.settle();
  expect((await c.run(run)).status).toBe("COMPLETED");
});
