// An operator skips a step before its turn, ends the run, and reruns it from that step. The step began at once, at the same time as the steps
// before it, and a second time after them.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { operator, simple } from "../support/conductor-world.ts";

const types = ["before", "inside", "inside_last", "behind"];

const choice = operator("SWITCH", "choose", {
  evaluatorType: "value-param",
  expression: "which",
  inputParameters: { which: "left" },
  decisionCases: { left: [simple("inside"), simple("inside_last")] },
  defaultCase: [],
});

it.each([
  ["inside", 0, ["before", "inside", "inside_last", "behind"]],
  ["inside_last", 0, ["before", "inside", "inside_last", "behind"]],
  ["inside_last", 1, ["inside", "inside_last", "behind"]],
  ["behind", 0, ["before", "inside", "inside_last", "behind"]],
  ["behind", 1, ["inside", "inside_last", "behind"]],
  ["behind", 2, ["inside_last", "behind"]],
])("a rerun from %s, skipped before its turn, of a run that ended after %j steps runs each step once", async (from, done, order) => {
  const c = await startConductor();
  await c.taskDef(...types.map((name) => ({ name, retryCount: 0 })));
  const run = await c.begin([simple("before"), choice, simple("behind")]);
  await c.ask("PUT", `/workflow/${run}/skiptask/${from}`);
  for (const type of types.slice(0, done)) await c.update(await c.take(type));
  await c.ask("DELETE", `/workflow/${run}`);
  await c.settle();
  const step = (await c.run(run)).tasks.find((task) => task.referenceTaskName === from);
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: step?.taskId });
  const begun: string[] = [];
  for (let found: string | undefined = ""; found !== undefined; ) {
    await c.settle();
    found = undefined;
    for (const type of types) {
      const task = await c.poll(type);
      if (task === undefined) continue;
      begun.push(type);
      await c.update(task);
      found = type;
    }
  }
  expect(begun).toEqual(order);
  expect((await c.run(run)).status).toBe("COMPLETED");
});
