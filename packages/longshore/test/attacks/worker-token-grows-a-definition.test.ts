// The attacker holds a worker token and stores a task definition of a megabyte. A run stores the definitions of its tasks. So the start of
// a workflow with a thousand such tasks wrote all of them: this blocked the event loop for ten seconds and used gigabytes.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { simple } from "../support/conductor-world.ts";

it("a workflow whose task definitions are too large together cannot start until they are smaller", async () => {
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

it("a sub-workflow whose task definitions are too large fails, and no run waits for it", async () => {
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
