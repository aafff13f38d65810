// The contract of artifacts in MongoDB, on a server that behaves like MongoDB. Also tests rules that apply only when foreign workers share
// it.

import { MongoNetworkError } from "mongodb";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Attempt } from "../../../src/protocols/flowkit/wire/artifacts/artifacts.ts";
import type { MongoDb } from "../../../src/protocols/flowkit/wire/artifacts/mongo-db.ts";
import { mongoArtifacts, openMongoArtifacts } from "../../../src/protocols/flowkit/worker/artifacts/mongo.ts";
import { artifactContract } from "../../contract/flowkit-artifacts.ts";
import { openMongo } from "../../support/flowkit-mongo.ts";
import { mongoMissing, sharedMongo } from "../../support/mongo.ts";

describe.skipIf(mongoMissing)(`MongoDB${mongoMissing ? `: ${mongoMissing}` : ""}`, () => {
  artifactContract({ name: "artifacts in MongoDB", open: openMongo, fencesByRow: true });

  async function setup() {
    const world = await openMongo();
    onTestFinished(() => world.close());
    const [source, sink] = (await world.begin(["up", "down"])) as [Attempt, Attempt];
    const read = async (consumer: Attempt) => {
      const uids: string[] = [];
      const options = { pollMs: 2, backoffMaxMs: 8, eofOnTaskDone: true, signal: new AbortController().signal };
      for await (const { uid } of world.store.read(consumer, ["up"], options)) uids.push(uid);
      return uids;
    };
    return { ...world, source, sink, read };
  }

  it("writes the documents that FlowKit's own workers read", async () => {
    const { db, store, source, sink, read } = await setup();
    await store.putPartials(source, [{ uid: "b0", meta: { n: 1 } }]);
    await store.complete(source, { total: 1 });
    await read(sink);
    await store.saveState("w-1", null);
    const { taskId: task_id } = source;
    const partial = await db.collection("artifacts").findOne({ task_id, status: "partial" });
    expect(partial).toMatchObject({
      ...{ task_id, node_id: "up", batch_uid: "b0", attempt_epoch: 1, status: "partial", worker_id: "w-1", payload: null, meta: { n: 1 } },
      ...{ created_at: expect.any(Date), updated_at: expect.any(Date) },
    });
    const complete = await db.collection("artifacts").findOne({ task_id, status: "complete" });
    expect(complete).toMatchObject({ node_id: "up", attempt_epoch: 1, worker_id: "w-1", meta: { total: 1 }, created_at: expect.any(Date) });
    expect(complete).not.toHaveProperty("batch_uid");
    const claim = await db.collection("stream_progress").findOne({ task_id });
    expect(claim).toMatchObject({ consumer_node: "down", from_node: "up", batch_uid: "b0", claimed_at: expect.any(Date) });
    expect(await db.collection("worker_state").findOne({ _id: "w-1" })).toMatchObject({ active_run: null, updated_at: expect.any(Date) });
  });

  it("[A03] returns a part that is written between a read and the end of the source", async () => {
    const { db, store, source, sink, read } = await setup();
    await store.putPartials(source, [{ uid: "b0", meta: {} }]);
    // Because of a wrong clock or a slow writer, this part is older than the one that was read before it.
    const late = { task_id: source.taskId, node_id: "up", batch_uid: "late", status: "partial", meta: {}, created_at: new Date(0) };
    const uids: string[] = [];
    const options = { pollMs: 2, backoffMaxMs: 8, eofOnTaskDone: true, signal: new AbortController().signal };
    for await (const { uid } of store.read(sink, ["up"], options)) {
      uids.push(uid);
      if (uid !== "b0") continue;
      await db.collection("artifacts").insertMany([late]);
      await store.complete(source, {});
    }
    expect(uids).toEqual(["b0", "late"]);
    expect(await read({ ...sink, epoch: 2 })).toEqual(["late", "b0"]);
  });

  it("continues to read after a source was marked complete, until our coordinator marks it finished, because its last parts may arrive late", async () => {
    const { db, store, source, sink } = await setup();
    const tasks = db.collection("tasks");
    await tasks.updateOne({ id: source.taskId }, { $set: { mirrored_by: "server" } });
    await store.putPartials(source, [{ uid: "b0", meta: {} }]);
    await store.complete(source, {});
    const late = { task_id: source.taskId, node_id: "up", batch_uid: "late", status: "partial", meta: {}, created_at: new Date() };
    const uids: string[] = [];
    const options = { pollMs: 2, backoffMaxMs: 8, eofOnTaskDone: true, signal: new AbortController().signal };
    let looks = 0;
    const counted = tasks.findOne.bind(tasks);
    const watched: MongoDb = {
      ...({ databaseName: db.databaseName } as MongoDb),
      collection: (name) => {
        if (name !== "tasks") return db.collection(name);
        return Object.assign(Object.create(tasks) as typeof tasks, {
          findOne: async (...args: Parameters<typeof tasks.findOne>) => {
            looks++;
            // By now it has read all parts, and would have ended.
            if (looks === 3) {
              await db.collection("artifacts").insertMany([late]);
              await tasks.updateOne({ id: source.taskId, "graph.nodes.node_id": "up" }, { $set: { "graph.nodes.$.status": "finished" } });
            }
            return counted(...args);
          },
        });
      },
    };
    for await (const { uid } of mongoArtifacts(watched).read(sink, ["up"], options)) uids.push(uid);
    expect(uids).toEqual(["b0", "late"]);
  });

  it("[F-CANC-03] reads all flags with which a coordinator cancels: the task's, the node's, and the node's status", async () => {
    const { db, store, source } = await setup();
    const flags = [
      { "coordinator.cancelled": true },
      { "graph.nodes.$.coordinator": { cancelled: true } },
      { "graph.nodes.$.status": "cancelling" },
    ];
    for (const flag of flags) {
      const { taskId } = source;
      const tasks = db.collection("tasks");
      const before = await tasks.findOne({ id: taskId });
      expect(await store.cancelled(taskId, "up")).toBe(false);
      await tasks.updateOne({ id: taskId, "graph.nodes.node_id": "up" }, { $set: flag });
      expect([await store.cancelled(taskId, "up"), await store.cancelled(taskId, "down")]).toEqual([true, flag === flags[0]]);
      await tasks.updateOne({ id: taskId }, { $set: { coordinator: before?.coordinator, graph: before?.graph } });
    }
  });

  it("returns parts of foreign workers, which have no attempts and no sequences", async () => {
    const { db, store, source, sink, read } = await setup();
    const { taskId: task_id } = source;
    const foreign = { task_id, node_id: "up", status: "partial", attempt_epoch: 1, worker_id: "py", payload: null };
    await db.collection("artifacts").insertMany([
      { ...foreign, batch_uid: "p1", meta: { skus: [1] }, created_at: new Date(2) },
      { ...foreign, batch_uid: "p0", meta: null, created_at: new Date(1) },
      { ...foreign, batch_uid: "bad", status: "failed", error: "no", created_at: new Date(3) },
    ]);
    await store.complete(source, {});
    expect(await read(sink)).toEqual(["p0", "p1"]);
  });

  it("takes over parts that a foreign consumer claimed in a failed attempt", async () => {
    const { db, store, source, sink, read } = await setup();
    await store.putPartials(source, [
      { uid: "a", meta: {} },
      { uid: "b", meta: {} },
    ]);
    await store.complete(source, {});
    const claim = { task_id: source.taskId, consumer_node: "down", from_node: "up", batch_uid: "a", claimed_at: new Date() };
    await db.collection("stream_progress").insertMany([claim]);
    expect(await read({ ...sink, epoch: 2 })).toEqual(["a", "b"]);
  });

  it("an earlier attempt cannot complete a node while a later one works on parts that the earlier one saw as claimed", async () => {
    const { store, source, sink, read } = await setup();
    await store.putPartials(source, [{ uid: "b0", meta: {} }]);
    await store.complete(source, {});
    expect(await read({ ...sink, epoch: sink.epoch + 2 })).toEqual(["b0"]);
    expect(await read(sink)).toEqual([]);
    expect(await store.complete(sink, {})).toBe(false);
    expect(await store.complete({ ...sink, epoch: sink.epoch + 2 }, {})).toBe(true);
  });

  it("leaves no parts to replaced attempts, for any order of their claims and releases during its end", async () => {
    const { db, store, source, sink } = await setup();
    await store.putPartials(source, [
      { uid: "a", meta: {} },
      { uid: "b", meta: {} },
    ]);
    await store.complete(source, {});
    const claims = db.collection("stream_progress");
    const claim = { task_id: source.taskId, consumer_node: "down", from_node: "up", batch_uid: "b", state: "claimed" };
    let epoch = 1;
    // Each scan finds the part claimed by a replaced attempt. When the reader tries to release this claim, the next such attempt has already
    // done it.
    const meddled = calling(db, async (name) => {
      if (name === "hasNext" && epoch < 5) await claims.insertMany([{ ...claim, epoch: epoch++ }]).catch(() => undefined);
      if (name === "deleteMany") await claims.deleteMany({ ...claim, epoch: { $lt: 9 } });
    });
    const uids: string[] = [];
    const options = { pollMs: 1, backoffMaxMs: 2, eofOnTaskDone: true, signal: new AbortController().signal };
    for await (const { uid } of mongoArtifacts(meddled).read({ ...sink, epoch: 9 }, ["up"], options)) uids.push(uid);
    expect([uids, epoch]).toEqual([["a", "b"], 5]);
  });

  it("a batch that failed once becomes a part when it succeeds, and is returned once", async () => {
    const { db, store, source, sink, read } = await setup();
    const { taskId: task_id } = source;
    await store.putPartials(source, [{ uid: "first", meta: {} }]);
    // FlowKit's coordinator marks a failed batch like this, without a time of creation.
    await db
      .collection("artifacts")
      .insertMany([{ task_id, node_id: "up", batch_uid: "b0", status: "failed", error: "no", updated_at: new Date() }]);
    expect(await store.putPartials({ ...source, epoch: 2 }, [{ uid: "b0", meta: { n: 5 } }])).toBe(true);
    await store.complete({ ...source, epoch: 2 }, {});
    expect(await read(sink)).toEqual(["first", "b0"]);
    const revived = await db.collection("artifacts").findOne({ task_id, batch_uid: "b0" });
    expect(revived).toMatchObject({ status: "partial", attempt_epoch: 2, meta: { n: 5 }, created_at: expect.any(Date) });
    expect(revived).not.toHaveProperty("error");
  });

  it("ends when the coordinator marks the source as finished, also when no artifact was written", async () => {
    const { db, source, sink, read } = await setup();
    await db
      .collection("tasks")
      .updateOne({ id: source.taskId, "graph.nodes.node_id": "up" }, { $set: { "graph.nodes.$.status": "finished" } });
    expect(await read(sink)).toEqual([]);
  });

  it("does not change an index that exists with another name", async () => {
    const { db, store, source } = await setup();
    const keys = { task_id: 1, node_id: 1, batch_uid: 1 } as const;
    await db.collection("artifacts").createIndex(keys, { name: "uniq_artifact_batch_uid", unique: true, sparse: true });
    expect(await store.putPartials(source, [{ uid: "a", meta: {} }])).toBe(true);
  });

  it("opens and closes its own connection", async () => {
    const store = await openMongoArtifacts(await sharedMongo());
    expect(store.name).toMatch(/^MongoDB \(t[0-9a-f]{8}\)$/);
    expect(await store.isComplete("t", "n")).toBe(false);
    await store.close();
    await expect(store.isComplete("t", "n")).rejects.toMatchObject({ code: "LONGSHORE_CLOSED" });
  });

  it("returns a task's document as JSON", async () => {
    const { db, store, source } = await setup();
    await db.collection("tasks").updateOne({ id: source.taskId }, { $set: { updated_at: new Date(0) } });
    expect(await store.task(source.taskId)).toMatchObject({ id: source.taskId, updated_at: "1970-01-01T00:00:00.000Z" });
  });

  it("continues to read at its position after MongoDB was down, and reports it once", async () => {
    const { db, source, sink, store } = await setup();
    await store.putPartials(source, [
      { uid: "a", meta: {} },
      { uid: "b", meta: {} },
    ]);
    await store.complete(source, {});
    const told: string[] = [];
    const trouble = { failing: (what: string) => told.push(`failing ${what}`), working: () => told.push("working") };
    const flaky = mongoArtifacts(failingAt(db, new Set([2, 5, 8])), { trouble });
    const uids: string[] = [];
    const options = { pollMs: 1, backoffMaxMs: 2, eofOnTaskDone: true, signal: new AbortController().signal };
    for await (const { uid } of flaky.read(sink, ["up"], options)) uids.push(uid);
    expect(uids).toEqual(["a", "b"]);
    expect(new Set(told)).toEqual(new Set(["failing reading parts for down from MongoDB", "working"]));
  });
});

/** A database in which some calls fail as when the server disappears: the second, the fifth and so on. */
function failingAt(db: MongoDb, calls: ReadonlySet<number>): MongoDb {
  let count = 0;
  return calling(db, async () => {
    if (calls.has(++count)) throw new MongoNetworkError("connection closed");
  });
}

/** A database with an action before each call. */
function calling(db: MongoDb, before: (name: string) => Promise<void>): MongoDb {
  const watched = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(object, name) {
        const member = Reflect.get(object, name, object) as unknown;
        if (typeof member !== "function") return member;
        return (...args: unknown[]) => {
          if (name === "find") return watched(member.apply(object, args) as object);
          if (!/^(hasNext|insertMany|deleteMany|countDocuments|findOne)$/.test(String(name))) return member.apply(object, args) as unknown;
          return before(String(name)).then(() => member.apply(object, args) as unknown);
        };
      },
    });
  return { databaseName: db.databaseName, collection: (name) => watched(db.collection(name)) };
}
