// A worker reports the tasks of a dynamic fork. No code checked their names. With half of a surrogate pair in one, the store refused the
// row of the task, the fork was tried again each second, and the run never ended.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { operator, simple } from "../support/conductor-world.ts";

const fork = operator("FORK_JOIN_DYNAMIC", "fork", {
  dynamicForkTasksParam: "tasks",
  dynamicForkTasksInputParamName: "inputs",
  inputParameters: { tasks: "${list.output.tasks}", inputs: {} },
});

it.each([
  ["reference name", { name: "work", taskReferenceName: "a\ud800", type: "SIMPLE" }, "taskReferenceName"],
  ["name", { name: "work\udc00", taskReferenceName: "a", type: "SIMPLE" }, "name"],
])("a fork whose task has half of a surrogate pair in its %s fails, and its run ends", async (_what, forked, field) => {
  const c = await startConductor();
  await c.taskDef({ name: "list", retryCount: 0 });
  const run = await c.begin([simple("list"), fork, operator("JOIN", "join")]);
  await c.work("list", { output: { tasks: [forked] } });
  await c.settle();
  const { status, reasonForIncompletion } = await c.run(run);
  expect({ status, reasonForIncompletion }).toEqual({
    status: "FAILED",
    reasonForIncompletion: expect.stringContaining(`${field} has half of a surrogate pair, expected valid Unicode`),
  });
});

it("a list of ids with an object in it gets 400", async () => {
  const c = await startConductor();
  const { status, text } = await c.send("PUT", "/workflow/bulk/pause", [{ toString: 1, valueOf: 2 }]);
  expect([status, JSON.parse(text).message]).toEqual([400, expect.stringContaining("an id is an object, expected a text")]);
});
