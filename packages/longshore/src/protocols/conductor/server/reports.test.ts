// Reports that name a task and a run, as the real server reads them.

import { expect, it, vi } from "vitest";
import { startConductor } from "../../../../test/support/conductor-rest.ts";
import { simple } from "../../../../test/support/conductor-world.ts";

// The first test loads the whole server, which takes long on a machine with much other work.
vi.setConfig({ testTimeout: 120_000 });

it("ends the task of a report that names another run, and refuses one that names no run", async () => {
  const c = await startConductor({ ephemeral: true });
  const first = await c.begin([simple("work")]);
  const second = await c.start("w");
  const task = await c.take("work");
  const [own, other] = task.workflowInstanceId === first ? [first, second] : [second, first];
  const report = (workflowInstanceId: string) =>
    c.send("POST", "/tasks", { ...c.resultOf(task, { output: { n: 1 } }), workflowInstanceId });
  expect((await report("nobody")).status).toBe(404);
  expect(await c.status(own)).toBe("RUNNING");
  expect(await report(other)).toMatchObject({ status: 200, text: task.taskId });
  await c.settle();
  expect(await c.run(own)).toMatchObject({ status: "COMPLETED", output: { n: 1 } });
  expect(await c.status(other)).toBe("RUNNING");
});
