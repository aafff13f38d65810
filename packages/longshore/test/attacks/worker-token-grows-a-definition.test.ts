// The attacker holds a worker token and stores a task definition of a megabyte. A run keeps the definitions of its tasks, so that the next start of a
// workflow with many such tasks wrote them all out: a thousand of them held the event loop for ten seconds and took gigabytes.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";

it("refuses to start a workflow whose task definitions are too large together, and starts it once they are not", async () => {
  const c = await startConductor();
  const tasks = Array.from({ length: 20 }, (_, at) => ({ ...simple("t"), taskReferenceName: `t${at}` }));
  await c.workflow({ name: "w", tasks });
  const define = (chars: number) =>
    c.ask("POST", "/metadata/taskdefs", [{ name: "t", ownerEmail: "a@example.com", inputTemplate: { text: "x".repeat(chars) } }]);
  await define(1_000_000);
  const refused = await c.send("POST", "/workflow/w", {});
  expect(refused.status).toBe(413);
  expect(refused.text).toContain("8388608 characters");
  await define(1_000);
  expect((await c.send("POST", "/workflow/w", {})).status).toBe(200);
});

it("fails a sub-workflow whose task definitions are too large, and leaves no run waiting", async () => {
  const c = await startConductor();
  const tasks = Array.from({ length: 20 }, (_, at) => ({ ...simple("t"), taskReferenceName: `t${at}` }));
  await c.workflow({ name: "child", tasks });
  await c.workflow({
    name: "parent",
    tasks: [simple("first"), { name: "s", taskReferenceName: "s", type: "SUB_WORKFLOW", subWorkflowParam: { name: "child" } }],
  });
  const id = await c.ask("POST", "/workflow/parent", {});
  await c.ask("POST", "/metadata/taskdefs", [{ name: "t", ownerEmail: "a@example.com", inputTemplate: { text: "x".repeat(1_000_000) } }]);
  await c.work("first");
  expect(await c.run(id)).toMatchObject({ status: "FAILED" });
});
