// Our worker and our coordinator together, on the embedded bus and the store's own parts, with graphs as in the guide.

import { streamTask } from "longshore/flowkit";
import { describe, expect, it, onTestFinished } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { type Task, task } from "../../../src/core/task.ts";
import { PartArtifacts } from "../../../src/protocols/flowkit/server/artifacts/part-artifacts.ts";
import { flowkit } from "../../../src/protocols/flowkit/worker/worker.ts";
import { work } from "../../../src/work.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";
import { deferred } from "../../support/until.ts";

async function setup(tasks: readonly Task[]) {
  const world = await openFlowkit();
  const { engine, coordinator, bus, clock } = world;
  const artifacts = new PartArtifacts({
    parts: engine.parts,
    board: engine.board,
    documents: engine.documents,
    clock,
    places: coordinator.places,
    task: async () => null,
  });
  const worker = await work({ tasks, on: flowkit({ bus, artifacts, workerId: "w-1" }), clock, signals: false, logger: false });
  onTestFinished(() => worker.stop({ force: true }));
  return { world, worker };
}

const producer = (gate: Promise<void> = Promise.resolve()) =>
  streamTask("indexer", {
    *iterBatches() {
      for (let at = 0; at < 3; at++) yield { batch_uid: `b${at}`, payload: { at } };
    },
    processBatch: async ({ payload }) => {
      if (payload.at === 2) await gate;
      return { skus: [0, 1, 2].map((item) => 3 * (payload.at as number) + item) };
    },
    finalize: () => ({ total: 9 }),
  });

const counter = streamTask("analyzer", { processBatch: ({ payload }) => ({ count: (payload.items as unknown[]).length }) });

const rechunked = (more: JsonObject = {}): JsonObject => ({
  nodes: [
    { node_id: "u", type: "indexer", io: { input_inline: {} } },
    {
      node_id: "d",
      type: "analyzer",
      depends_on: ["u"],
      io: {
        input_inline: {
          input_adapter: "pull.from_artifacts.rechunk:size",
          input_args: { from_nodes: ["u"], size: 2, meta_list_key: "skus" },
        },
        ...more,
      },
    },
  ],
});

describe("a graph on our worker", () => {
  it("[F-ADAPT-10] names in io.input_inline what a node reads, and the command contains it unchanged", async () => {
    const { world } = await setup([producer(), counter]);
    const commands = await world.spy(["cmd.analyzer.v1"]);
    const run = await world.submit(rechunked({ start_when: "first_batch" }));
    expect(await world.ended(run)).toMatchObject({ state: "succeeded" });
    const parts = await world.partsOf(run, "d");
    expect(parts.map(({ count }) => count)).toEqual([2, 1, 2, 1, 2, 1]);
    const input_args = { from_nodes: ["u"], size: 2, meta_list_key: "skus" };
    expect(commands.map(({ payload }) => payload.input_inline)).toEqual([
      { input_adapter: "pull.from_artifacts.rechunk:size", input_args },
    ]);
    expect(world.warnings).toEqual([]);
  });

  it("[F-OVR-02] makes its batches itself without an adapter, and reads those of its upstream with an adapter", async () => {
    const seen: [string, unknown][] = [];
    const both = streamTask("both", {
      *iterBatches() {
        for (let at = 0; at < 3; at++) yield { batch_uid: `own${at}`, payload: { at } };
      },
      processBatch: ({ batch_uid, payload }, { nodeId }) => {
        seen.push([`${nodeId} ${batch_uid}`, payload.at ?? payload.meta]);
        return { of: nodeId, at: payload.at ?? null };
      },
    });
    const { world } = await setup([both]);
    const input_inline = { input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } };
    const nodes = [
      { node_id: "u", type: "both" },
      { node_id: "d", type: "both", depends_on: ["u"], io: { input_inline } },
    ];
    expect(await world.ended(await world.submit({ nodes }))).toMatchObject({ state: "succeeded" });
    expect(seen).toEqual([...[0, 1, 2].map((at) => [`u own${at}`, at]), ...[0, 1, 2].map((at) => [`d own${at}`, { of: "u", at }])]);
  });

  it("[F-ADAPT-10, F-BP-04] starts with the first batch of its upstream when configured, and otherwise after its end", async () => {
    const gate = deferred<void>();
    const { world } = await setup([producer(gate.promise), counter]);
    const early = await world.submit(rechunked({ start_when: "first_batch" }));
    await world.until(async () => (await world.partsOf(early, "d")).length === 4);
    expect(await world.task(early, "u")).toMatchObject({ state: "held" });
    const late = await world.submit(rechunked());
    await world.until(async () => (await world.partsOf(late, "u")).length === 2);
    expect(await world.task(late, "d")).toBeUndefined();
    gate.resolve();
    expect(await world.ended(early)).toMatchObject({ state: "succeeded" });
    expect(await world.ended(late)).toMatchObject({ state: "succeeded" });
    expect(await world.partsOf(late, "d")).toHaveLength(6);
  });

  it("many batches arrive once each", async () => {
    const many = streamTask("indexer", {
      *iterBatches() {
        for (let at = 0; at < 3_000; at++) yield { batch_uid: `b${at}`, payload: { at } };
      },
      processBatch: ({ payload }) => ({ at: payload.at }),
    });
    const adding = streamTask("analyzer", {
      processBatch: ({ payload }) => ({ at: (payload.meta as { at: number }).at }),
    });
    const { world } = await setup([many, adding]);
    const input_inline = { input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } };
    const run = await world.submit({
      nodes: [
        { node_id: "u", type: "indexer" },
        { node_id: "d", type: "analyzer", depends_on: ["u"], io: { start_when: "first_batch", input_inline } },
      ],
    });
    expect(await world.ended(run)).toMatchObject({ state: "succeeded" });
    const { id } = (await world.task(run, "d")) as { id: string };
    expect(await world.engine.parts.count(id)).toBe(3_000);
  });

  it("an ordinary task can be a node", async () => {
    const { world } = await setup([task("greet", ({ name }: { name: string }) => ({ text: `Hello ${name}` }))]);
    const run = await world.submit({ nodes: [{ node_id: "g", type: "greet", io: { input_inline: { name: "Ada" } } }] });
    expect(await world.ended(run)).toMatchObject({ state: "succeeded" });
    expect(await world.partsOf(run, "g")).toEqual([{ text: "Hello Ada" }]);
  });
});
