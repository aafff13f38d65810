// README.md shows records and payloads. This test lets a worker do everything that the page shows. The worker must send each of the page's
// worker records, and must read each of its coordinator records unchanged.

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { type FlowkitWorld, flowkitWorld } from "../../../test/support/flowkit-played.ts";
import { sectionsOf } from "../../../test/support/markdown.ts";
import { deferred, until } from "../../../test/support/until.ts";
import type { JsonObject } from "../../core/json/json.ts";
import { TestClock } from "../../testing/clock.ts";
import { decodeEnvelope, readCommand, readQuery, readSignal } from "./wire/decode.ts";
import { stableHash } from "./wire/hash.ts";
import type { Envelope } from "./wire/shapes.ts";
import { streamTask } from "./worker/stream-task.ts";

const page = readFileSync(new URL("README.md", import.meta.url), "utf8");
const shown = [...page.matchAll(/```json\n([\s\S]*?)\n```/g)].map(([, text = ""]) => JSON.parse(text) as JsonObject);
const nowMs = 1_700_000_000_000;

/** Random ids are replaced by those of the page. */
function likeShown(payload: JsonObject): JsonObject {
  const text = JSON.stringify(payload).replaceAll(/"lease_id":"[^"]+"/g, '"lease_id":"L"');
  return JSON.parse(text) as JsonObject;
}

describe("the page", () => {
  it("shows what a worker sends, in the same form", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock(nowMs);
    const seen: JsonObject[] = [];
    const gate = deferred<void>();
    let failing = false;
    const probe = streamTask("probe", {
      iterBatches: () => [{ batch_uid: "b0", payload: {} }],
      processBatch: async (batch, ctx) => {
        seen.push(batch.payload);
        if (failing) throw new Error("disk full");
        if (ctx.nodeId === "held") await ctx.cancellable(gate.promise);
        return { count: (batch.payload.items as unknown[] | undefined)?.length ?? 1 };
      },
      finalize: () => ({ total: 3 }),
    });
    const worker = await world.worker([probe], { workerId: "w-1" }, { clock });
    const command = await world.bus.publish([{ topic: "cmd.probe.v1", key: "T:N", value: JSON.stringify(shown[0]) }]);
    expect(command).toBeUndefined();
    world.artifacts.produce("T", "u", []);
    world.artifacts.node("T", "u").parts.set("b0", { skus: [1, 2, 3] });
    await world.end("N");
    await run(world, "T", "M", { input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    failing = true;
    await run(world, "T", "F", null);
    failing = false;
    await world.start(null, { taskId: "T", nodeId: "held" });
    await until(() => seen.length === 5);
    await world.discover({ taskId: "T", nodeId: "held" });
    await world.discover({ taskId: "T", nodeId: "other" });
    await until(() => world.told.filter(({ payload }) => payload.reply !== undefined).length === 2);
    await world.cancel("user_request", "w-1", { taskId: "T", nodeId: "held" });
    await world.end("held");
    await worker.stop();
    await world.event("WORKER_OFFLINE");
    const told = [...world.told.map(({ payload }) => likeShown(payload)), ...seen];
    const sent = shown.filter((example) => example.kind !== undefined || example.reply !== undefined || example.from_node !== undefined);
    expect(sent.length).toBeGreaterThan(10);
    for (const example of sent) expect(told).toContainEqual(example);
  });

  it("shows what a coordinator sends, as it is read", () => {
    const [start = {}] = shown;
    const read = decodeEnvelope(Buffer.from(JSON.stringify(start)));
    expect(read.ok && readCommand(read.value)).toMatchObject({ ok: true, value: { cmd: "TASK_START" } });
    const signal = shown.find(({ sig }) => sig !== undefined) as JsonObject;
    const query = shown.find((example) => example.query !== undefined) as JsonObject;
    const envelope = { ...(start as unknown as Envelope), msg_type: "event" as const };
    expect(readSignal({ ...envelope, payload: signal })).toEqual({ ok: true, value: signal });
    expect(readQuery({ ...envelope, msg_type: "query", payload: query })).toEqual({ ok: true, value: query });
  });

  it("shows ids that are the hashes of their texts", () => {
    const rows = sectionsOf(page).find(({ title }) => title === "Ids")?.rows ?? [];
    expect(rows.length).toBeGreaterThan(12);
    for (const [, text = "", digest = ""] of rows) {
      expect(stableHash(JSON.parse(text.replaceAll("`", "")) as JsonObject), text).toBe(digest.replaceAll("`", ""));
    }
  });
});

async function run(world: FlowkitWorld, taskId: string, nodeId: string, inline: JsonObject | null): Promise<void> {
  await world.start(inline, { taskId, nodeId });
  await world.end(nodeId);
}
