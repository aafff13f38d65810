// An operator retries, reruns or restarts a run before its FORK_JOIN_DYNAMIC, or one in which the fork gets other tasks this time. That
// order set the counter of the JOIN, when the tasks of the fork were not known. So the JOIN ended at once, and the task after it ran
// without their results.

import { expect, it } from "vitest";
import type { Json } from "../../src/core/json/json.ts";
import { type ConductorServer, startConductor } from "../support/conductor-rest.ts";
import { operator, simple } from "../support/conductor-world.ts";

const fork = [
  operator("FORK_JOIN_DYNAMIC", "fork", {
    ...{ dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" },
    inputParameters: { tasks: "${first.output.tasks}", inputs: {} },
  }),
  operator("JOIN", "join"),
];
const loop = [operator("DO_WHILE", "loop", { loopOver: fork, inputParameters: { _items: [1, 2] } })];

const forked = (count: number): Json => Array.from({ length: count }, (_, at) => ({ name: "forked", taskReferenceName: `forked${at}` }));

/** A run whose first task is open. */
async function conductor(tasks: object[]): Promise<{ c: ConductorServer; run: string }> {
  const c = await startConductor();
  await c.taskDef(...["first", "forked", "after"].map((name) => ({ name, retryCount: 0 })));
  return { c, run: await c.begin([simple("first"), ...tasks, simple("after")]) };
}

/** Ends the first task, and shows that `after` begins when all forked tasks have ended. */
async function workOff(c: ConductorServer, count: number, rounds = 1): Promise<void> {
  await c.work("first", { output: { tasks: forked(count) } });
  for (let at = 0; at < count * rounds; at++) {
    await c.settle();
    expect(await c.poll("after")).toBeUndefined();
    await c.work("forked");
  }
  await c.settle();
  await c.work("after");
}

const orders = {
  async retry(c: ConductorServer, run: string) {
    await c.work("first", { status: "FAILED" });
    await c.ask("POST", `/workflow/${run}/retry`);
  },
  async rerun(c: ConductorServer, run: string) {
    await c.work("first", { status: "FAILED" });
    await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: (await c.record(run, "first")).taskId });
  },
  async restart(c: ConductorServer, run: string) {
    await c.ask("DELETE", `/workflow/${run}`);
    await c.ask("POST", `/workflow/${run}/restart`);
  },
};

it.each(["retry", "rerun", "restart"] as const)("a %s before a dynamic fork leaves its join waiting for all tasks", async (order) => {
  const { c, run } = await conductor(fork);
  await orders[order](c, run);
  await workOff(c, 2);
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it("a retry before a loop leaves the joins of its dynamic forks waiting for all tasks", async () => {
  const { c, run } = await conductor(loop);
  await orders.retry(c, run);
  await workOff(c, 2, 2);
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it.each([
  [1, 3],
  [3, 1],
  [2, 0],
])("a rerun in which a fork of %i tasks gets %i joins the new tasks", async (before, now) => {
  const { c, run } = await conductor(fork);
  await workOff(c, before);
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: (await c.record(run, "first")).taskId });
  await workOff(c, now);
  expect((await c.run(run)).status).toBe("COMPLETED");
});
