// A worker cancels an optional step, and its run continues with the next step. A retry of the run once treated the cancelled step as if it
// had been cancelled with its run. It began again at the same time as the next step, and its end began the next step a second time.

import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";

const types = ["forgiven", "behind"];

async function afterCancelling(): Promise<{ c: ConductorServer; run: string }> {
  const c = await startConductor();
  await c.taskDef(...types.map((name) => ({ name, retryCount: 0 })));
  const run = await c.begin([simple("forgiven", { optional: true }), simple("behind")]);
  await c.update(await c.take("forgiven"), { status: "CANCELED" });
  await c.settle();
  return { c, run };
}

async function tasksIn(c: ConductorServer): Promise<string[]> {
  await c.settle();
  const found = await Promise.all(types.map((type) => c.poll(type)));
  for (const task of found) if (task !== undefined) await c.update(task);
  return found.flatMap((task) => (task === undefined ? [] : [task.taskDefName]));
}

it("a rerun from the step after a cancelled one runs only that step, once", async () => {
  const { c, run } = await afterCancelling();
  await c.update(await c.take("behind"));
  await c.settle();
  const { tasks } = await c.run(run);
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: tasks[1]?.taskId });
  expect([await tasksIn(c), await tasksIn(c)]).toEqual([["behind"], []]);
  expect((await c.run(run)).status).toBe("COMPLETED");
  expect(tasks.map(({ status }) => status)).toEqual(["COMPLETED_WITH_ERRORS", "COMPLETED"]);
});

it("a retry after a failure of the next step runs only that step", async () => {
  const { c, run } = await afterCancelling();
  await c.update(await c.take("behind"), { status: "FAILED" });
  await c.settle();
  await c.ask("POST", `/workflow/${run}/retry`);
  expect([await tasksIn(c), await tasksIn(c)]).toEqual([["behind"], []]);
  expect((await c.run(run)).status).toBe("COMPLETED");
});
