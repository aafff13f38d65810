// The data about our coordinator's tasks that foreign workers find in MongoDB, on a server that behaves like MongoDB.

import { MongoNetworkError } from "mongodb";
import { describe, expect, it, onTestFinished } from "vitest";
import { Mirror, type MirrorOptions } from "../../../src/protocols/flowkit/server/artifacts/mirror.ts";
import { BatchRecords } from "../../../src/protocols/flowkit/server/coordinator/batches.ts";
import { connectMongo, type MongoDb } from "../../../src/protocols/flowkit/wire/artifacts/mongo-db.ts";
import { mongoArtifacts } from "../../../src/protocols/flowkit/worker/artifacts/mongo.ts";
import type { TestClock } from "../../../src/testing/clock.ts";
import { openGraphs } from "../../support/flowkit-board.ts";
import { mongoMissing, sharedMongo } from "../../support/mongo.ts";
import { deferred } from "../../support/until.ts";

const up = { node_id: "up", type: "src", retry_policy: { max: 2, backoff_sec: 0 } };
const down = { node_id: "down", type: "sink", depends_on: ["up"] };

async function setup() {
  const { db, close } = await connectMongo(await sharedMongo());
  onTestFinished(close);
  const graphs = await openGraphs();
  const begin = (options: Partial<MirrorOptions> = {}) => {
    const mirror = new Mirror({ ...graphs.engine, db, server: "s-1", ...options });
    onTestFinished(() => mirror.close());
    mirror.start();
    return mirror;
  };
  const all = async (collection: string, filter = {}) => {
    const cursor = db.collection(collection).find(filter, { sort: { _id: 1 } });
    const found = [];
    while (await cursor.hasNext()) found.push(...cursor.readBufferedDocuments());
    return found;
  };
  const task = (id: string) => db.collection("tasks").findOne({ id });
  return { ...graphs, db, begin, all, task };
}

describe.skipIf(mongoMissing)(`the mirror in MongoDB${mongoMissing ? `: ${mongoMissing}` : ""}`, () => {
  it("updates the document of a task while its nodes run", async () => {
    const { begin, submit, take, done, task } = await setup();
    const mirror = begin();
    const { id } = await submit([up, down], { params: { shop: 7 } });
    await mirror.settled();
    expect(await task(id)).toMatchObject({
      status: "running",
      params: { shop: 7 },
      graph: { nodes: [{ status: "queued" }, { status: "queued" }] },
    });
    const first = await take("src", "w-7");
    await mirror.settled();
    expect(await task(id)).toMatchObject({
      graph: { nodes: [{ status: "running", attempt_epoch: 1, lease: { worker_id: "w-7" }, started_at: expect.any(Date) }, {}] },
      updated_at: expect.any(Date),
    });
    await done(first);
    await done(await take("sink"));
    await mirror.settled();
    expect(await task(id)).toMatchObject({
      ...{ status: "finished", finished_at: expect.any(Date), result: { nodes: [{ node_id: "up" }, { node_id: "down" }] } },
      graph: { nodes: [{ status: "finished", finished_at: expect.any(Date) }, { status: "finished" }] },
    });
  });

  it("shows why a node waits for a retry", async () => {
    const { begin, submit, take, fail, task } = await setup();
    const mirror = begin();
    const { id } = await submit([{ ...up, retry_policy: { max: 2, backoff_sec: 60 } }]);
    await fail(await take("src"), "torn", true);
    await mirror.settled();
    expect(await task(id)).toMatchObject({ graph: { nodes: [{ status: "deferred", last_error: "torn" }] } });
  });

  it("imports what a worker stored in MongoDB without a timely event", async () => {
    const { db, begin, submit, take, engine } = await setup();
    const mirror = begin();
    const { id } = await submit([up]);
    const held = await take("src");
    const name = { task_id: id, node_id: "up" };
    const hold = { taskId: held.id, grant: held.grant };
    const earlier = { taskId: id, nodeId: "up", epoch: held.grant, workerId: "w-1" };
    await mongoArtifacts(db).putPartials(earlier, [
      { uid: "b0", meta: { n: 0 } },
      { uid: "b1", meta: { n: 1 } },
    ]);
    await engine.parts.put(hold, [{ uid: "b1", value: '{"n":1}' }]);
    await mirror.adopt(name, hold);
    await mirror.adopt(name, hold);
    const { parts } = await engine.parts.read(held.id, 0, 10);
    expect(parts.map(({ uid, value }) => [uid, value])).toEqual([
      ["b1", '{"n":1}'],
      ["b0", '{"n":0}'],
    ]);
  });

  it("[F-CANC-03] sets the flags that tell foreign workers to stop", async () => {
    const { db, begin, submit, take, withdrawn, engine, task } = await setup();
    const mirror = begin();
    const { id } = await submit([up]);
    const held = await take("src");
    const store = mongoArtifacts(db);
    await engine.runs.tell(id, { kind: "cancel", error: "not needed" });
    await mirror.settled();
    expect(await store.cancelled(id, "up")).toBe(true);
    expect(await task(id)).toMatchObject({ status: "cancelling", coordinator: { cancelled: true, cancel_reason: "not needed" } });
    await withdrawn(held);
    await mirror.settled();
    expect(await task(id)).toMatchObject({ status: "finished", coordinator: { cancelled: true } });
  });

  it("stores what nodes produce for foreign consumers, each batch and its metrics once", async () => {
    const { db, begin, submit, take, put, fail, done, all } = await setup();
    const mirror = begin();
    const { id } = await submit([up, down]);
    const first = await take("src");
    await put(first, "b0", "b1");
    await mirror.settled();
    await fail(first, "flaky", true);
    const second = await take("src");
    await put(second, "b1", "b2");
    await done(second, { total: 3 });
    await mirror.settled();
    const sink = await take("sink");
    const consumer = { taskId: id, nodeId: "down", epoch: sink.grant, workerId: "py" };
    const options = { pollMs: 1, backoffMaxMs: 1, eofOnTaskDone: true, signal: new AbortController().signal };
    const uids: string[] = [];
    for await (const { uid } of mongoArtifacts(db).read(consumer, ["up"], options)) uids.push(uid);
    expect(uids).toEqual(["b0", "b1", "b2"]);
    const rows = await all("metrics_raw", { task_id: id });
    expect(rows.map(({ batch_uid, metrics, final }) => [batch_uid, metrics, final])).toEqual([
      ["b0", { of: "b0" }, undefined],
      ["b1", { of: "b1" }, undefined],
      ["b2", { of: "b2" }, undefined],
      ["__final__", { total: 3 }, true],
    ]);
  });

  // In the reference a batch that failed once keeps its row permanently, and the metrics of its success are dropped.
  it("[A09] keeps a row of a failed batch, and replaces it when the batch succeeds", async () => {
    const { begin, submit, take, put, done, fail, engine, all } = await setup();
    const mirror = begin();
    const { id } = await submit([up]);
    const first = await take("src");
    await put(first, "b0");
    const letter = (batch_uid: string) => ({ batch_uid, reason_code: "flaky", error: "torn", attempt_epoch: first.grant, tries: 1 });
    const failures = { b0: letter("b0"), b1: letter("b1") };
    await new BatchRecords(engine.documents).keep(first.id, { failures, dead_letters: [], failing: null, judged: null });
    await fail(first, "flaky", true);
    await mirror.settled();
    const rows = async (collection: string) =>
      (await all(collection, { task_id: id, batch_uid: { $exists: true } })).map(({ _id, created_at, updated_at, ...row }) => row);
    const failed = { batch_uid: "b1", metrics: {}, failed: true, reason: "flaky", attempt_epoch: first.grant };
    expect(await rows("metrics_raw")).toMatchObject([{ batch_uid: "b0", metrics: { of: "b0" } }, failed]);
    expect(await rows("artifacts")).toMatchObject([
      { batch_uid: "b0", status: "partial" },
      { batch_uid: "b1", status: "failed", error: "flaky" },
    ]);
    const second = await take("src");
    await put(second, "b1");
    await done(second);
    await mirror.settled();
    const [, metrics] = await rows("metrics_raw");
    expect(metrics).toMatchObject({ batch_uid: "b1", metrics: { of: "b1" }, attempt_epoch: second.grant });
    expect(metrics).not.toHaveProperty("failed");
    expect((await rows("artifacts"))[1]).toMatchObject({ batch_uid: "b1", status: "partial", meta: { of: "b1" } });
  });

  it("removes the data of a pruned run, but no data of another data file", async () => {
    const { db, begin, submit, take, put, done, engine, all, clock } = await setup();
    const mirror = begin();
    const [gone, kept] = [await submit([up]), await submit([up])];
    for (const _ of [gone, kept]) {
      const task = await take("src");
      await put(task, "b0");
      await done(task, { total: 1 });
    }
    await mirror.settled();
    const foreign = { task_id: "elsewhere", node_id: "up", batch_uid: "b0" };
    await db.collection("tasks").insertMany([{ id: "elsewhere", mirrored_by: "s-1", mirrored_from: "another file", status: "finished" }]);
    await db.collection("artifacts").insertMany([foreign]);
    await db.collection("stream_progress").insertMany([{ task_id: gone.id, consumer_node: "down", from_node: "up", batch_uid: "b0" }]);
    expect(await engine.removeRun(gone.id)).toBe(true);
    await (clock as TestClock).advance(15_000);
    await mirror.settled();
    expect((await all("tasks")).map(({ id }) => id).sort()).toEqual([kept.id, "elsewhere"]);
    for (const collection of ["artifacts", "metrics_raw", "stream_progress"])
      expect(await all(collection, { task_id: gone.id })).toEqual([]);
    expect(await all("artifacts", { task_id: kept.id })).toHaveLength(2);
    expect(await all("artifacts", { task_id: "elsewhere" })).toHaveLength(1);
  });

  it("does not change artifacts that a worker has written to MongoDB", async () => {
    const { db, begin, submit, take, put, done, all } = await setup();
    const mirror = begin();
    const { id } = await submit([up]);
    const task = await take("src", "py");
    const attempt = { taskId: id, nodeId: "up", epoch: task.grant, workerId: "py" };
    await mongoArtifacts(db).putPartials(attempt, [{ uid: "b0", meta: { by: "py" } }]);
    await put(task, "b0");
    await mongoArtifacts(db).complete(attempt, { by: "py" });
    await done(task, { by: "us" });
    await mirror.settled();
    expect((await all("artifacts", { task_id: id })).map(({ meta, worker_id }) => [meta, worker_id])).toEqual([
      [{ by: "py" }, "py"],
      [{ by: "py" }, "py"],
    ]);
  });

  it("knows the result of a node whose end was never reported", async () => {
    const { db, begin, submit } = await setup();
    const mirror = begin();
    const { id: task_id } = await submit([up]);
    expect(await mirror.completed({ task_id, node_id: "up" })).toBeNull();
    await mongoArtifacts(db).complete({ taskId: task_id, nodeId: "up", epoch: 1, workerId: "py" }, { total: 9 });
    expect(await mirror.completed({ task_id, node_id: "up" })).toEqual({ total: 9 });
    expect(await mirror.completed({ task_id: "nothing", node_id: "up" })).toBeNull();
  });

  it("[A02] releases unfinished claims of earlier attempts, of any worker", async () => {
    const { db, begin, all } = await setup();
    const mirror = begin();
    const claim = { task_id: "t", consumer_node: "down", from_node: "up" };
    const claims = [
      { ...claim, batch_uid: "theirs" },
      { ...claim, batch_uid: "lost", epoch: 1, state: "claimed" },
      { ...claim, batch_uid: "done", epoch: 1, state: "processed" },
      { ...claim, batch_uid: "newer", epoch: 3, state: "claimed" },
      { ...claim, batch_uid: "other", consumer_node: "beside" },
    ];
    await db.collection("stream_progress").insertMany(claims);
    await mirror.release({ task_id: "t", node_id: "down" }, 3);
    expect((await all("stream_progress", { task_id: "t" })).map(({ batch_uid }) => batch_uid).sort()).toEqual(["done", "newer", "other"]);
  });

  it("writes the next epoch before its command is sent, also when there is much to write", async () => {
    const { db, begin, submit, take, fail, task } = await setup();
    const gates = new Map<string, ReturnType<typeof deferred<void>>>();
    const mirror = begin({ db: heldBy(db, (id) => gates.get(id)?.promise) });
    const run = (type: string) => submit([{ ...up, type }]);
    const [first, ours, last] = [await run("first"), await run("ours"), await run("last")];
    await fail(await take("ours"), "flaky", true);
    await mirror.settled();
    for (const { id } of [first, last]) gates.set(id, deferred<void>());
    onTestFinished(() => gates.get(last.id)?.resolve());
    await take("first");
    await take("last");
    const { grant } = await take("ours");
    const released = mirror.release({ task_id: ours.id, node_id: "up" }, grant);
    gates.get(first.id)?.resolve();
    await released;
    expect(await task(ours.id)).toMatchObject({ graph: { nodes: [{ attempt_epoch: grant }] } });
    expect(await task(last.id)).toMatchObject({ graph: { nodes: [{ attempt_epoch: 0 }] } });
    gates.get(last.id)?.resolve();
    await mirror.settled();
  });

  it("uses no result of a run's earlier life for a node that begins again", async () => {
    const { begin, submit, take, put, done, engine, all } = await setup();
    const mirror = begin();
    const { id: task_id } = await submit([up]);
    const task = await take("src");
    await put(task, "b0");
    await done(task, { total: 1 });
    await mirror.settled();
    expect(await mirror.completed({ task_id, node_id: "up" })).toEqual({ total: 1 });
    await engine.runs.tell(task_id, { kind: "rerun", node: 0 });
    expect(await mirror.completed({ task_id, node_id: "up" })).toBeNull();
    expect(await all("artifacts", { task_id })).toEqual([]);
    const again = await take("src");
    await put(again, "b0");
    await done(again, { total: 2 });
    await mirror.settled();
    expect(await mirror.completed({ task_id, node_id: "up" })).toEqual({ total: 2 });
  });

  it("mirrors at its start the open tasks, and those that have ended since the last time", async () => {
    const { begin, submit, take, done, task, clock, engine } = await setup();
    const before = await submit([up]);
    const open = await take("src");
    const first = begin();
    await first.settled();
    expect(await task(before.id)).toMatchObject({ status: "running" });
    await first.close();
    await done(open);
    // It began and ended while nothing was mirrored.
    const between = await submit([up]);
    await done(await take("src"));
    const second = begin();
    await second.settled();
    expect(await task(before.id)).toMatchObject({ status: "finished" });
    expect(await task(between.id)).toMatchObject({ status: "finished" });
    expect([clock.now() > 0, await engine.runs.run(between.id)]).toMatchObject([true, { state: "succeeded" }]);
  });

  it("continues after MongoDB was down", async () => {
    const { db, clock, begin, submit, task } = await setup();
    let away = true;
    const told: string[] = [];
    const trouble = { failing: (what: string) => told.push(what), working: () => undefined };
    const mirror = begin({ db: awayWhile(db, () => away), trouble });
    const { id } = await submit([up]);
    const testClock = clock as unknown as { armed(ms: number, count: number): Promise<void>; advance(ms: number): Promise<void> };
    await testClock.armed(1_000, 1);
    expect(told).toEqual(["keeping tasks in MongoDB"]);
    away = false;
    await testClock.advance(1_000);
    await mirror.settled();
    expect(await task(id)).toMatchObject({ status: "running" });
  });

  it("lists the workers that have announced themselves", async () => {
    const { begin, all } = await setup();
    const worker = { worker_id: "w-1", roles: ["src", "sink"], version: "2.0.0", capacity: 4, status: "online" as const, seenAt: 5 };
    const mirror = begin({ roster: () => [worker] });
    await mirror.settled();
    expect(await all("worker_registry")).toMatchObject([
      {
        worker_id: "w-1",
        type: "src,sink",
        capabilities: { roles: ["src", "sink"] },
        status: "online",
        capacity: { tasks: 4 },
        last_seen: new Date(5),
      },
    ]);
  });
});

/** The database, unavailable as long as the test requires. */
function awayWhile(db: MongoDb, away: () => boolean): MongoDb {
  const collection = (name: string) =>
    new Proxy(db.collection(name), {
      get(object, member) {
        const found = Reflect.get(object, member, object) as unknown;
        if (typeof found !== "function") return found;
        return (...args: unknown[]) => (away() ? Promise.reject(new MongoNetworkError("away")) : (found.apply(object, args) as unknown));
      },
    });
  return { databaseName: db.databaseName, collection };
}

/** Writes of a task wait for the promise that `gate` returns for it. */
function heldBy(db: MongoDb, gate: (id: string) => Promise<void> | undefined): MongoDb {
  const collection = (name: string) =>
    new Proxy(db.collection(name), {
      get(object, member) {
        const found = Reflect.get(object, member, object) as unknown;
        if (typeof found !== "function" || name !== "tasks" || member !== "updateOne") return found;
        return async (...args: [{ id: string }]) => {
          await gate(args[0].id);
          return found.apply(object, args) as unknown;
        };
      },
    });
  return { databaseName: db.databaseName, collection };
}
