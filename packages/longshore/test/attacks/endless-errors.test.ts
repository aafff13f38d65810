// The attacker holds a worker token and reports failures with errors of megabytes. Each run and each attempt stores its error, and every list
// reads the errors of all its rows. So only a short part of an error may be stored, in every protocol.

import { describe, expect, it, onTestFinished } from "vitest";
import { noRetry } from "../../src/engine/run/retry.ts";
import { TaskErrorCode } from "../../src/protocols/stepflow/wire/messages.ts";
import { startConductor } from "../support/conductor-rest.ts";
import { queueWorld } from "../support/stepflow-queue.ts";
import { oneStep, startStepflow } from "../support/stepflow-server.ts";

const megabyte = 1_048_576;
const kept = 16_384;
const huge = `begin ${"x".repeat(2 * megabyte)} end`;

describe("an error of megabytes", () => {
  it("of a Stepflow worker is shortened in each attempt of its task", async () => {
    const world = await queueWorld();
    onTestFinished(() => world.close());
    await world.post("t1", { policy: JSON.stringify({ ...noRetry, failures: 10 }) });
    const worker = world.pull();
    await worker.register({ componentId: "c" });
    for (let attempt = 0; attempt < 3; attempt++) {
      const { taskId } = await worker.next();
      await world.complete({ taskId, error: { code: TaskErrorCode.COMPONENT_FAILED, message: huge } });
    }
    const errors = (await world.engine.reader.attempts("t1")).flatMap(({ error }) => error ?? []);
    expect(errors).toHaveLength(3);
    expect(Math.max(...errors.map((error) => error.length))).toBeLessThanOrEqual(kept);
    expect(errors[0]).toMatch(/^begin .* end$/s);
  });

  it("of a Stepflow worker is shortened in its run", async () => {
    const server = await startStepflow();
    const run = await server.submit(oneStep("/hold", {}), [null]);
    const { id: taskId, grant } = await server.claim("hold");
    await server.engine.board.fail({ taskId, grant }, { error: huge, retryable: false });
    await server.ended(run);
    const { text } = await textOf(server.url, "/api/longshore/v1/runs");
    expect(text.length).toBeLessThan(4 * kept);
  });

  it("that a Conductor workflow takes from data is shortened in its run", async () => {
    const { url, workflow, start } = await startConductor();
    const inputParameters = { terminationStatus: "FAILED", terminationReason: "${workflow.input.why}" };
    const tasks = [{ name: "end", taskReferenceName: "end", type: "TERMINATE", inputParameters }];
    await workflow({ name: "w", version: 1, schemaVersion: 2, ownerEmail: "a@example.com", tasks });
    await start("w", { input: { why: huge } });
    const { text } = await textOf(url, "/api/workflow/search?size=10");
    expect(JSON.parse(text).results[0].reasonForIncompletion.length).toBeLessThanOrEqual(kept);
  });
});

async function textOf(url: string, path: string): Promise<{ text: string }> {
  return { text: await (await fetch(`${url}${path}`)).text() };
}
