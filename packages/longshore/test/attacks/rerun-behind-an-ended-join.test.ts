// A worker ends a join with a report, and the run fails. An operator reruns it from a step that the join no longer waits for: the failed step
// after the join was never started again. An operator retries it after a branch of the join has failed: the steps after the join ran a second
// time.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { fork, operator, simple } from "../support/conductor-world.ts";

const types = ["first", "second", "behind"];

const choice = operator("SWITCH", "choose", {
  evaluatorType: "value-param",
  expression: "which",
  inputParameters: { which: "none" },
  decisionCases: { left: [simple("never")] },
  defaultCase: [],
});

it("a rerun from a step before a join that a report has ended starts the failed step after the join again", async () => {
  const c = await startConductor();
  await c.taskDef(...[...types, "never"].map((name) => ({ name, retryCount: 0 })));
  const run = await c.begin([...fork("f", [[simple("first"), simple("second")]], ["second"]), choice, simple("behind")]);
  const join = (await c.run(run)).tasks.find(({ taskType }) => taskType === "JOIN");
  if (join === undefined) throw new Error("There is no join.");
  await c.update(join);
  await c.update(await c.take("behind"), { status: "FAILED" });
  await c.settle();
  const first = (await c.run(run)).tasks.find((task) => task.referenceTaskName === "first");
  await c.ask("POST", `/workflow/${run}/rerun`, { reRunFromTaskId: first?.taskId });
  for (const type of types) await c.update(await c.take(type));
  await c.settle();
  expect((await c.run(run)).status).toBe("COMPLETED");
});

it.each([
  ["fails", [simple("first")], "first"],
  ["fails before a step that is skipped", [simple("first"), simple("skipped")], "skipped"],
])(
  "a retry of a branch that %s, after a report had ended its join, does not run the steps behind the join a second time",
  async (_how, branch, last) => {
    const c = await startConductor();
    await c.taskDef(...types.map((name) => ({ name, retryCount: 0 })));
    const run = await c.begin([...fork("f", [branch], [last]), simple("second"), simple("behind")]);
    if (last === "skipped") await c.ask("PUT", `/workflow/${run}/skiptask/skipped`);
    const join = (await c.run(run)).tasks.find(({ taskType }) => taskType === "JOIN");
    if (join === undefined) throw new Error("There is no join.");
    await c.update(join);
    await c.update(await c.take("second"));
    await c.update(await c.take("first"), { status: "FAILED" });
    await c.ask("POST", `/workflow/${run}/retry`);
    expect(await c.poll("second")).toBeUndefined();
    for (const type of ["first", "behind"]) await c.update(await c.take(type));
    await c.settle();
    expect((await c.run(run)).status).toBe("COMPLETED");
  },
);
