// The reference's quick start and its handler, written in TypeScript, on a real Kafka and a MongoDB that foreign workers could share.

import { randomUUID } from "node:crypto";
import { Batch, BatchResult, FinalizeResult, RoleHandler, type RunContext, streamTask, Worker, WorkerConfig } from "longshore/flowkit";
import { MongoClient } from "mongodb";
import { describe, expect, it, onTestFinished } from "vitest";
import { openKafkaBus } from "../../../src/bus/kafka.ts";
import { topicNamesDefault } from "../../../src/protocols/flowkit/wire/shapes.ts";
import { FlowkitWorld } from "../../support/flowkit-played.ts";
import { kafkaMissing, sharedKafka, soonHeard } from "../../support/kafka.ts";
import { mongoMissing, sharedMongo } from "../../support/mongo.ts";

const missing = kafkaMissing ?? mongoMissing;

async function setup(...names: string[]) {
  const { brokers, prefix } = await sharedKafka();
  const { url, database } = await sharedMongo();
  const bus = await openKafkaBus({ brokers, partitions: 2, ...soonHeard });
  onTestFinished(() => bus.close());
  const client = await MongoClient.connect(url);
  onTestFinished(() => client.close());
  const named = (name: string) => `${prefix}${name}`;
  const { cmd, status, announce, query, reply, signals } = topicNamesDefault;
  const topics = {
    cmd: named(cmd),
    status: named(status),
    announce: named(announce),
    query: named(query),
    reply: named(reply),
    signals: named(signals),
  };
  const roles = names.map(named);
  const world = await new FlowkitWorld(bus, topics).listen(roles);
  const cfg = (more: { roles: string[]; worker_id?: string }) =>
    new WorkerConfig({
      kafka_bootstrap: brokers.join(","),
      topic_cmd_fmt: world.topics.cmd,
      topic_status_fmt: world.topics.status,
      topic_worker_announce: world.topics.announce,
      topic_query: world.topics.query,
      topic_reply: world.topics.reply,
      topic_signals: world.topics.signals,
      pull_poll_ms_default: 25,
      db_cancel_poll_ms: 100,
      ...more,
    });
  return { world, db: client.db(database), cfg, roles, brokers };
}

describe.skipIf(missing !== undefined)(`a worker on Kafka and MongoDB${missing === undefined ? "" : ` (needs ${missing})`}`, () => {
  it("runs the guide's quick start as it is documented", async () => {
    const { world, db, cfg, roles } = await setup("processor");
    const [processor = ""] = roles;
    class MyHandler extends RoleHandler {
      override readonly role = processor;

      override async *iter_batches() {
        yield new Batch({ batch_uid: "b1", payload: { items: [1, 2, 3] } });
      }

      override async process_batch(batch: Batch, _ctx: RunContext) {
        return new BatchResult({ success: true, metrics: { count: (batch.payload.items as unknown[]).length } });
      }
    }
    const worker = new Worker({ db, cfg: cfg({ roles }), handlers: { [processor]: new MyHandler() }, logger: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    await world.start(null, { role: processor });
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE" });
    expect((await world.event("BATCH_OK")).payload).toMatchObject({ batch_uid: "b1", metrics: { count: 3 } });
    const rows = await db.collection("artifacts").find({ task_id: world.taskId }).sort({ status: 1 }).toArray();
    expect(rows).toMatchObject([
      { node_id: "n", status: "complete", meta: {} },
      { node_id: "n", status: "partial", batch_uid: "b1", meta: { count: 3 }, attempt_epoch: 1 },
    ]);
  });

  it("streams one worker's artifacts to another worker, and both nodes end", async () => {
    const { world, db, cfg, roles } = await setup("src", "sink");
    const [src = "", sink = ""] = roles;
    class Source extends RoleHandler {
      override readonly role = src;

      override async *iter_batches() {
        for (let at = 0; at < 3; at++) yield new Batch({ batch_uid: `b${at}`, payload: { skus: [3 * at, 3 * at + 1, 3 * at + 2] } });
      }

      override async process_batch(batch: Batch) {
        return new BatchResult({ success: true, metrics: { skus: batch.payload.skus } });
      }

      override async finalize() {
        return new FinalizeResult({ metrics: { total: 9 } });
      }
    }
    class Sink extends RoleHandler {
      override readonly role = sink;

      override async process_batch(batch: Batch) {
        return new BatchResult({ success: true, metrics: { count: (batch.payload.items as unknown[]).length } });
      }
    }
    const worker = new Worker({ db, cfg: cfg({ roles }), handlers: { [src]: new Source(), [sink]: new Sink() }, slots: 2, logger: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    const input_args = { from_node: "u", size: 2, poll_ms: 25, meta_list_key: "skus" };
    await world.start({ input_adapter: "pull.from_artifacts.rechunk:size", input_args }, { role: sink, nodeId: "d" });
    await world.event("TASK_ACCEPTED", "d");
    await world.start(null, { role: src, nodeId: "u" });
    expect((await world.end("u")).payload).toMatchObject({ kind: "TASK_DONE", metrics: { total: 9 } });
    expect((await world.end("d")).payload.kind).toBe("TASK_DONE");
    expect(world.events("d").flatMap(({ payload }) => (payload.metrics as { count?: number } | undefined)?.count ?? [])).toEqual([
      2, 1, 2, 1, 2, 1,
    ]);
  });

  it("is cancelled by the flags that a coordinator sets in the database", async () => {
    const { world, db, cfg, roles } = await setup("slow");
    const [slow = ""] = roles;
    class Slow extends RoleHandler {
      override readonly role = slow;

      override async process_batch(_batch: Batch, ctx: RunContext): Promise<BatchResult> {
        await ctx.cancellable(new Promise(() => {}));
        return new BatchResult({ success: true });
      }
    }
    const worker = new Worker({ db, cfg: cfg({ roles, worker_id: `w-${randomUUID()}` }), handlers: { [slow]: new Slow() }, logger: false });
    onTestFinished(() => worker.stop());
    await worker.start();
    await db.collection("tasks").insertOne({ id: world.taskId, coordinator: {}, graph: { nodes: [{ node_id: "n", status: "running" }] } });
    await world.start(null, { role: slow });
    await world.event("TASK_ACCEPTED");
    await db.collection("tasks").updateOne({ id: world.taskId }, { $set: { "coordinator.cancelled": true } });
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "db_flag" });
    expect(await db.collection("artifacts").countDocuments({ task_id: world.taskId, status: "complete" })).toBe(0);
  });

  it("two workers of a role share its commands, and each is done once", async () => {
    const { world, db, cfg, roles } = await setup("shared");
    const [shared = ""] = roles;
    const handlers = {
      [shared]: new (class extends RoleHandler {
        override readonly role = shared;
      })(),
    };
    const workers = ["a", "b"].map(
      (name) => new Worker({ db, cfg: cfg({ roles, worker_id: `w-${name}-${world.taskId}` }), handlers, logger: false }),
    );
    for (const worker of workers) onTestFinished(() => worker.stop());
    await Promise.all(workers.map((worker) => worker.start()));
    // So many that they are never all in one partition.
    const nodes = Array.from({ length: 40 }, (_, at) => `n${at}`);
    for (const nodeId of nodes) await world.start(null, { role: shared, nodeId });
    const ends = await Promise.all(nodes.map((nodeId) => world.end(nodeId)));
    expect(ends.map(({ payload }) => payload.kind)).toEqual(nodes.map(() => "TASK_DONE"));
    for (const nodeId of nodes) expect(world.kinds(nodeId)).toEqual(["TASK_ACCEPTED", "BATCH_OK", "TASK_DONE"]);
    expect(new Set(ends.map(({ payload }) => payload.worker_id)).size).toBe(2);
  });

  it("a task of batches with flowkit() is another worker of the same group", async () => {
    const { world, db, roles, brokers } = await setup("stream");
    const [stream = ""] = roles;
    const counting = streamTask(stream, async function* (batches) {
      for await (const { payload } of batches) yield { size: Object.keys(payload).length };
      return { ok: true };
    });
    const { flowkit } = await import("longshore/flowkit");
    const { work } = await import("longshore");
    const { topics } = world;
    await using _worker = await work({
      tasks: [counting],
      on: flowkit({
        brokers,
        mongo: db,
        topicCmdFmt: topics.cmd,
        topicStatusFmt: topics.status,
        topicWorkerAnnounce: topics.announce,
        topicQuery: topics.query,
        topicReply: topics.reply,
        topicSignals: topics.signals,
      }),
      signals: false,
      logger: false,
    });
    await world.start({ a: 1 }, { role: stream });
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: { ok: true } });
  });
});
