// A client of Conductor starts a workflow with an idempotency key and FAIL_ON_RUNNING, so that no two of its runs are open. Only the first run
// of the key counted: after its end, any number of further runs could be open at the same time.

import { expect, it } from "vitest";
import { startConductor } from "../support/conductor-rest.ts";
import { operator } from "../support/conductor-world.ts";

it("with FAIL_ON_RUNNING, each run of a key refuses further starts until it ends, also when they come together", async () => {
  const c = await startConductor();
  await c.ask("POST", "/metadata/workflow", { name: "once", version: 1, tasks: [operator("WAIT", "wait")] });
  const body = { name: "once", idempotencyKey: "k", idempotencyStrategy: "FAIL_ON_RUNNING" };
  const started: string[] = [];
  for (let round = 0; round < 4; round++) {
    const answers = await Promise.all(Array.from({ length: 3 }, () => c.send("POST", "/workflow", body)));
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409]);
    started.push(answers.find(({ status }) => status === 200)?.text as string);
    await c.ask("DELETE", `/workflow/${started.at(-1)}`);
  }
  expect(new Set(started).size).toBe(4);
  expect(await c.ask("POST", "/workflow", { ...body, idempotencyStrategy: "RETURN_EXISTING" })).toBe(started.at(-1));
});
