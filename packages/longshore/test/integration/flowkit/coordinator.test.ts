import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/json.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

const node = (node_id: string, type: string, more: JsonObject = {}): JsonObject => ({ node_id, type, ...more });

describe("a node", () => {
  it("[A12] of a graph without status and epoch is started, streams its batches and ends with its metrics", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w1", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { io: { input_inline: { total: 3 } } })] });
    const command = await worker.accept();
    expect(command).toMatchObject({
      v: 1,
      msg_type: "cmd",
      role: "coordinator",
      task_id: run.id,
      node_id: "a",
      step_type: "indexer",
      attempt_epoch: 1,
      payload: { cmd: "TASK_START", input_ref: null, input_inline: { total: 3 }, batching: null, cancel_token: expect.any(String) },
    });
    await worker.batch(command, "b0", { count: 2 });
    await worker.batch(command, "b1", { count: 1 });
    await worker.done(command, { total: 3 });
    expect(await world.ended(run)).toMatchObject({ state: "succeeded" });
    expect(await world.task(run, "a")).toMatchObject({ state: "done", holder: "w1", output: '{"total":3}' });
    expect(await world.partsOf(run, "a")).toEqual([{ count: 2 }, { count: 1 }]);
    expect(world.warnings).toEqual([]);
  });
});
