// An operator reruns a run from a step inside a branch of a SWITCH. The step after the SWITCH was treated as following the SWITCH itself,
// which had kept its result. So it began at once, beside the steps that it waits for, and a second time after them.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { operator, simple } from "../support/conductor-world.ts";

const types = ["inside_first", "inside_last", "behind"];

const choice = operator("SWITCH", "choose", {
  evaluatorType: "value-param",
  expression: "which",
  inputParameters: { which: "left" },
  decisionCases: { left: [simple("inside_first"), simple("inside_last")] },
  defaultCase: [],
});

it.each([
  ["inside_first", ["inside_first", "inside_last", "behind"]],
  ["inside_last", ["inside_last", "behind"]],
  ["behind", ["behind"]],
  ["choose", ["inside_first", "inside_last", "behind"]],
])("a rerun from %s runs each step behind it once, in its order", async (from, order) => {
  const c = await startConductor();
  await c.taskDef(...types.map((name) => ({ name, retryCount: 0 })));
  const run = await c.begin([choice, simple("behind")]);
  expect(await c.workOff(types)).toEqual(types);
  const step = (await c.run(run)).tasks.find((task) => task.referenceTaskName === from);
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: step?.taskId });
  expect(await c.workOff(types)).toEqual(order);
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it("a retry of a step inside a branch does not begin the step after the branch", async () => {
  const c = await startConductor();
  await c.taskDef(...types.map((name) => ({ name, retryCount: 0 })));
  const run = await c.begin([choice, simple("behind")]);
  await c.update(await c.take("inside_first"));
  await c.update(await c.take("inside_last"), { status: "FAILED" });
  await c.settle();
  await c.ask("POST", `/workflow/${run}/retry`);
  expect(await c.workOff(types)).toEqual(["inside_last", "behind"]);
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it.each([
  ["other_first", ["other_first"], ["other_first", "behind"]],
  ["other_first", ["other_first", "other_last"], ["other_first", "other_last", "behind"]],
  ["other_last", ["other_first", "other_last"], ["other_last", "behind"]],
])("a rerun from %s, skipped by order in the branch %j that was not chosen, runs each step once", async (from, others, order) => {
  const c = await startConductor();
  await c.taskDef(...[...types, ...others].map((name) => ({ name, retryCount: 0 })));
  const both = { ...choice, defaultCase: others.map((name) => simple(name)) };
  const run = await c.begin([both, simple("behind")]);
  await c.ask("PUT", `/workflow/${run}/skiptask/${from}`);
  expect(await c.workOff([...types, ...others])).toEqual(types);
  const step = (await c.run(run)).tasks.find((task) => task.referenceTaskName === from);
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: step?.taskId });
  expect(await c.workOff([...types, ...others])).toEqual(order);
  expect((await c.run(run)).status).toBe("COMPLETED");
});
