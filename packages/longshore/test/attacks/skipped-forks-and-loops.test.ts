// An operator skips a FORK_JOIN, a FORK_JOIN_DYNAMIC, a DO_WHILE, or a SWITCH with a script, before the run reaches it. After the forks nothing
// followed, and the run ended COMPLETED without its last tasks. The tasks of the loop ran beside the task after it, and those of the default
// case ran too.

import { expect, it } from "vitest";
import { type ConductorServer, startConductor } from "../support/conductor-rest.ts";
import { fork, operator, simple } from "../support/conductor-world.ts";

const types = ["first", "inner", "other", "after"];

const dynamicFork = [
  operator("FORK_JOIN_DYNAMIC", "fork", {
    ...{ dynamicForkTasksParam: "tasks", dynamicForkTasksInputParamName: "inputs" },
    inputParameters: { tasks: [{ name: "inner", taskReferenceName: "inner" }], inputs: {} },
  }),
  operator("JOIN", "fork_join"),
];
const loopOf = (tasks: object[]) => operator("DO_WHILE", "loop", { loopOver: tasks, inputParameters: { _items: [1, 2] } });
const script = operator("SWITCH", "choose", {
  ...{ evaluatorType: "javascript", expression: "'left'", decisionCases: { left: [simple("inner")] }, defaultCase: [simple("other")] },
});

const skipped: [what: string, reference: string, tasks: object[]][] = [
  ["fork", "fork", fork("fork", [[simple("inner")], [simple("other")]], ["inner", "other"])],
  [
    "fork of several steps",
    "fork",
    fork(
      "fork",
      [
        [simple("inner"), simple("other")],
        [simple("x"), simple("y")],
      ],
      ["other", "y"],
    ),
  ],
  ["dynamic fork", "fork", dynamicFork],
  ["loop", "loop", [loopOf([simple("inner"), simple("other")])]],
  ["loop around a dynamic fork", "loop", [loopOf(dynamicFork)]],
  ["switch with a script", "choose", [script]],
];

async function conductor(tasks: object[]): Promise<{ c: ConductorServer; run: string }> {
  const c = await startConductor();
  await c.taskDef(...types.map((name) => ({ name, retryCount: 0 })));
  return { c, run: await c.begin([simple("first"), ...tasks, simple("after")]) };
}

it.each(skipped)("a run with a skipped %s continues with the task after it", async (_what, reference, tasks) => {
  const { c, run } = await conductor(tasks);
  await c.ask("PUT", `/workflow/${run}/skiptask/${reference}`);
  expect(await c.workOff(types)).toEqual(["first", "after"]);
  expect((await c.run(run)).status).toBe("COMPLETED");
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: (await c.record(run, "first")).taskId });
  expect(await c.workOff(types)).toEqual(["first", "after"]);
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it.each(skipped)("a retry after a skipped %s repeats only what failed", async (_what, reference, tasks) => {
  const { c, run } = await conductor([...tasks, simple("last")]);
  await c.ask("PUT", `/workflow/${run}/skiptask/${reference}`);
  await c.update(await c.take("first"));
  await c.update(await c.take("last"));
  await c.update(await c.take("after"), { status: "FAILED" });
  await c.settle();
  await c.ask("POST", `/workflow/${run}/retry`);
  expect(await c.workOff(types)).toEqual(["after"]);
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it.each(skipped.slice(0, 1))("a rerun from the join of a skipped %s runs the fork", async (_what, reference, tasks) => {
  const { c, run } = await conductor(tasks);
  await c.ask("PUT", `/workflow/${run}/skiptask/${reference}`);
  expect(await c.workOff(types)).toEqual(["first", "after"]);
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: (await c.record(run, "fork_join")).taskId });
  expect(await c.workOff(types)).toEqual(["inner+other", "after"]);
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it("a skipped dynamic fork inside a loop lets each iteration end", async () => {
  const { c, run } = await conductor([loopOf(dynamicFork)]);
  await c.ask("PUT", `/workflow/${run}/skiptask/fork`);
  expect(await c.workOff(types)).toEqual(["first", "inner", "after"]);
  expect((await c.run(run)).status).toBe("COMPLETED");
});
