// Whole pipelines: our workers and our coordinator together, on the embedded bus and on a real Kafka. Every record may come twice, and a
// worker may leave in the middle.

import { streamTask } from "longshore/flowkit";
import { describe, expect, it, onTestFinished } from "vitest";
import { openKafkaBus } from "../../../src/bus/kafka.ts";
import type { Bus, Outgoing } from "../../../src/core/bus/bus.ts";
import type { JsonObject } from "../../../src/core/json/json.ts";
import type { Task } from "../../../src/core/task.ts";
import { PartArtifacts } from "../../../src/protocols/flowkit/server/artifacts/part-artifacts.ts";
import { topicNamesDefault } from "../../../src/protocols/flowkit/wire/shapes.ts";
import { flowkit } from "../../../src/protocols/flowkit/worker/worker.ts";
import { work } from "../../../src/work.ts";
import { fn, node, statsOf, sumOf } from "../../support/flowkit-graphs.ts";
import { type FlowkitWorldOptions, openFlowkit } from "../../support/flowkit-world.ts";
import { kafkaMissing, sharedKafka, soonHeard } from "../../support/kafka.ts";
import { deferred } from "../../support/until.ts";

type World = Awaited<ReturnType<typeof openFlowkit>>;

/** Cuts `total` items into batches of `size`, as its input says. */
const indexer = (role = "indexer", gate: () => Promise<void> = async () => {}) =>
  streamTask(role, {
    *iterBatches({ input_inline }) {
      const { total, size } = input_inline as { total: number; size: number };
      for (let from = 0; from < total; from += size) {
        yield {
          batch_uid: `b${from / size}`,
          payload: { items: Array.from({ length: Math.min(size, total - from) }, (_, at) => from + at) },
        };
      }
    },
    processBatch: async ({ payload }) => {
      await gate();
      return { skus: payload.items, count: (payload.items as unknown[]).length };
    },
  });

/** Passes on its input, piece by piece. */
const enricher = (role = "enricher") =>
  streamTask(role, { processBatch: ({ payload }) => ({ skus: payload.items, enriched: (payload.items as unknown[]).length }) });

/** Counts its input. */
const analyzer = (role = "analyzer") =>
  streamTask(role, { processBatch: ({ payload }) => ({ count: (payload.items as unknown[]).length }) });

const source = (id: string, total: number, size: number, type = "indexer") => node(id, type, { io: { input_inline: { total, size } } });

const rechunk = (from_nodes: string[], size: number, start_when = "first_batch"): JsonObject => ({
  depends_on: from_nodes,
  io: {
    start_when,
    input_inline: { input_adapter: "pull.from_artifacts.rechunk:size", input_args: { from_nodes, size, meta_list_key: "skus" } },
  },
});

async function workerOn(world: World, tasks: readonly Task[], workerId: string, topics: JsonObject = {}) {
  const { engine, coordinator, bus, clock } = world;
  const { parts, board, documents } = engine;
  const artifacts = new PartArtifacts({ parts, board, documents, clock, places: coordinator.places, task: async () => null });
  const worker = await work({ tasks, on: flowkit({ bus, artifacts, workerId, ...topics }), clock, signals: false, logger: false });
  onTestFinished(() => worker.stop({ force: true }));
  return worker;
}

async function setup(tasks: readonly Task[], options: FlowkitWorldOptions = {}) {
  const world = await openFlowkit(options);
  return { world, worker: await workerOn(world, tasks, "w-1") };
}

/** Five nodes: two streams, one of them enriched, counted, and merged. */
const pipeline = (roles = { indexer: "indexer", enricher: "enricher", analyzer: "analyzer" }) => ({
  nodes: [
    source("w1", 12, 5, roles.indexer),
    node("w2", roles.enricher, rechunk(["w1"], 3)),
    node("w3", roles.analyzer, rechunk(["w2"], 2)),
    node("w4", roles.analyzer, rechunk(["w1"], 4)),
    fn("merge", "merge.generic", { from_nodes: ["w3", "w4"], target: { key: "merged" } }, ["w3", "w4"]),
    sumOf("w3"),
    sumOf("w4"),
  ],
});

/** The shape of the reference's own pipeline: a stream that is enriched, read, and analysed together with a merged result. */
const smoke = () => {
  const onBatch = (from: string, to: string) => ({ from, to, mode: "async", trigger: "on_batch" });
  const together = { input_adapter: "pull.from_artifacts", input_args: { from_nodes: ["w5", "w3"], poll_ms: 25 } };
  return {
    schema_version: "1.0",
    nodes: [
      source("w1", 18, 5),
      node("w2", "enricher", { ...rechunk(["w1"], 3), fan_in: "any" }),
      fn("w3", "merge.generic", { from_nodes: ["w1", "w2"], target: { key: "w3-merged" } }, ["w1", "w2"]),
      node("w5", "ocr", { ...rechunk(["w2"], 2), fan_in: "any" }),
      node("w4", "tally", { depends_on: ["w3", "w5"], fan_in: "any", io: { start_when: "first_batch", input_inline: together } }),
      sumOf("w4"),
    ],
    edges: [
      ["w1", "w2"],
      ["w2", "w3"],
      ["w1", "w3"],
      ["w2", "w5"],
      ["w5", "w4"],
      ["w3", "w4"],
    ],
    edges_ex: [onBatch("w1", "w2"), onBatch("w2", "w5"), onBatch("w5", "w4"), onBatch("w3", "w4")],
  };
};

/** Counts the items in whole artifacts. */
const tally = () => streamTask("tally", { processBatch: ({ payload }) => ({ count: (payload.meta as { skus: unknown[] }).skus.length }) });

async function expectWholeSmoke(world: World, run: Awaited<ReturnType<World["submit"]>>): Promise<void> {
  const ended = await world.ended(run);
  expect([ended.state, ended.error]).toEqual(["succeeded", null]);
  for (const id of ["w1", "w2", "w3", "w4", "w5"]) expect(await world.task(run, id)).toMatchObject({ state: "done" });
  expect(statsOf(ended, "w4")).toEqual({ count: 18 });
  // Lists of 5, 5, 5 and 3 are cut into threes, and those into twos.
  const parts = await Promise.all(["w1", "w2", "w5"].map(async (id) => (await world.partsOf(run, id)).length));
  expect(parts).toEqual([4, 7, 11]);
}

async function expectWholePipeline(world: World, run: Awaited<ReturnType<World["submit"]>>): Promise<void> {
  const ended = await world.ended(run);
  expect([ended.state, ended.error]).toEqual(["succeeded", null]);
  expect(statsOf(ended, "w3")).toEqual({ count: 12 });
  expect(statsOf(ended, "w4")).toEqual({ count: 12 });
  const merged = JSON.parse((await world.task(run, "merge"))?.output ?? "null") as JsonObject;
  expect(merged).toMatchObject({ merged_from: ["w3", "w4"], complete_nodes: ["w3", "w4"] });
}

describe("exact counts", () => {
  it.each([
    ["[T23] of one stream: 13 in fives", 13, 5],
    ["[T25] with a remainder: 10 in threes", 10, 3],
  ])("%s", async (_title, total, size) => {
    const { world } = await setup([indexer(), analyzer()]);
    const run = await world.submit({ nodes: [source("u", total, size), node("d", "analyzer", rechunk(["u"], 4)), sumOf("d"), sumOf("u")] });
    const ended = await world.ended(run);
    expect([statsOf(ended, "u"), statsOf(ended, "d")]).toEqual([{ count: total }, { count: total }]);
    expect(await world.partsOf(run, "u")).toHaveLength(Math.ceil(total / size));
  });

  it("[T24] of three streams into one: 22", async () => {
    const { world } = await setup([indexer(), analyzer()]);
    const nodes = [source("u1", 6, 4), source("u2", 7, 3), source("u3", 9, 5)];
    const run = await world.submit({ nodes: [...nodes, node("d", "analyzer", rechunk(["u1", "u2", "u3"], 2)), sumOf("d")] });
    expect(statsOf(await world.ended(run), "d")).toEqual({ count: 22 });
  });

  it("[T34] of shards that are rechunked: 11 items in fours, then in threes", async () => {
    const { world } = await setup([indexer(), analyzer()]);
    const run = await world.submit({ nodes: [source("u", 11, 4), node("d", "analyzer", rechunk(["u"], 3)), sumOf("d")] });
    expect(statsOf(await world.ended(run), "d")).toEqual({ count: 11 });
    expect(await world.partsOf(run, "u")).toHaveLength(3);
    expect(await world.task(run, "u")).toMatchObject({ state: "done" });
  });
});

describe("a pipeline", () => {
  const tasks = () => [indexer(), enricher(), enricher("ocr"), analyzer(), tally()];

  it("[T36] of five streaming nodes with a merge finishes with all results", async () => {
    const { world } = await setup(tasks());
    await expectWholeSmoke(world, await world.submit(smoke()));
    await expectWholePipeline(world, await world.submit(pipeline()));
    expect(world.warnings).toEqual([]);
  });

  it("[T78] with a node that merges without a worker and a node that reads from it finishes", async () => {
    const { world } = await setup(tasks());
    const merge = fn("merge", "merge.generic", { from_nodes: ["u1", "u2"], target: { key: "merged" } }, ["u1", "u2"]);
    const run = await world.submit({
      nodes: [source("u1", 5, 5), source("u2", 7, 7), merge, node("sink", "analyzer", rechunk(["merge"], 2))],
    });
    expect((await world.ended(run)).state).toBe("succeeded");
    const states = await Promise.all(["merge", "sink"].map(async (id) => (await world.task(run, id))?.state));
    expect(states).toEqual(["done", "done"]);
    // Its final metrics have what it merged. It has no batch to read.
    expect(JSON.parse((await world.task(run, "merge"))?.output ?? "null")).toMatchObject({
      complete_nodes: ["u1", "u2"],
      partial_batches: 2,
    });
    expect(await world.partsOf(run, "sink")).toEqual([]);
  });

  /** Every third record comes twice, and groups of records arrive in another order. */
  function twice(bus: Bus): Bus {
    let count = 0;
    const publish = async (records: readonly Outgoing[]) => {
      const doubled = records.flatMap((record) => (count++ % 3 === 0 ? [record, record] : [record]));
      if (count % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      await bus.publish(doubled);
    };
    const { name } = bus;
    return { name, publish, subscribe: (one) => bus.subscribe(one), ensure: (topics) => bus.ensure(topics), close: () => bus.close() };
  }

  it("[T37] has the same result when commands and events arrive twice and late", async () => {
    const { world } = await setup(tasks(), { bus: twice });
    await expectWholeSmoke(world, await world.submit(smoke()));
    await expectWholePipeline(world, await world.submit(pipeline()));
  });

  it("[T38] in a line has the same result when commands and events arrive twice and late", async () => {
    const { world } = await setup(tasks(), { bus: twice });
    const nodes = [source("a", 9, 2), node("b", "enricher", rechunk(["a"], 3, "ready")), node("c", "analyzer", rechunk(["b"], 2, "ready"))];
    const run = await world.submit({ nodes: [...nodes, sumOf("c")] });
    expect(statsOf(await world.ended(run), "c")).toEqual({ count: 9 });
  });

  it("[T39, T56] finishes although its worker is stopped in the middle and another one starts; no worker claims to continue a run", async () => {
    const gate = deferred<void>();
    let batches = 0;
    const stuck = indexer("indexer", async () => {
      if (++batches === 2) await gate.promise;
    });
    const { world, worker } = await setup([stuck, enricher(), analyzer()]);
    const status = await world.spy(["status.indexer.v1"]);
    const run = await world.submit(pipeline());
    await world.until(async () => batches === 2);
    const stopping = worker.stop({ force: true });
    gate.resolve();
    await stopping;
    await workerOn(world, tasks(), "w-2");
    await expectWholePipeline(world, run);
    expect(status.map(({ payload }) => payload.kind)).not.toContain("TASK_RESUMED");
    expect((await world.task(run, "w1"))?.holder).toBe("w-2");
  });

  it("[T40] finishes although its coordinator stops in the middle", async () => {
    const gate = deferred<void>();
    let batches = 0;
    const slow = indexer("indexer", async () => {
      if (++batches === 2) await gate.promise;
    });
    const { world } = await setup([slow, enricher(), analyzer()]);
    const run = await world.submit(pipeline());
    await world.until(async () => batches === 2);
    await world.restartCoordinator(async () => gate.resolve());
    await expectWholePipeline(world, run);
  });
});

describe.skipIf(kafkaMissing !== undefined)(`a pipeline on Kafka${kafkaMissing === undefined ? "" : ` (needs ${kafkaMissing})`}`, () => {
  it("finishes with two workers of each role, and its coordinator restarts in the middle", async () => {
    const { brokers, prefix } = await sharedKafka();
    const kafka = await openKafkaBus({ brokers, partitions: 4, againMs: 10, ...soonHeard });
    const { cmd, status, announce, query, reply, signals } = topicNamesDefault;
    const named = (name: string) => `${prefix}${name}`;
    const config = {
      cluster: prefix,
      topic_cmd_fmt: named(cmd),
      topic_status_fmt: named(status),
      topic_worker_announce: named(announce),
      topic_query: named(query),
      topic_reply: named(reply),
      topic_signals: named(signals),
    };
    const topics = {
      topicCmdFmt: config.topic_cmd_fmt,
      topicStatusFmt: config.topic_status_fmt,
      topicWorkerAnnounce: config.topic_worker_announce,
      topicQuery: config.topic_query,
      topicReply: config.topic_reply,
      topicSignals: config.topic_signals,
    };
    const roles = { indexer: named("indexer"), enricher: named("enricher"), analyzer: named("analyzer") };
    const world = await openFlowkit({ bus: () => kafka, config, outbox: true });
    const tasks = [indexer(roles.indexer), enricher(roles.enricher), analyzer(roles.analyzer)];
    await workerOn(world, tasks, "w-1", topics);
    await workerOn(world, tasks, "w-2", topics);
    const first = await world.submit(pipeline(roles));
    await world.inState(first, "w1", "held");
    await world.restartCoordinator();
    const second = await world.submit(pipeline(roles));
    await expectWholePipeline(world, first);
    await expectWholePipeline(world, second);
  });
});
