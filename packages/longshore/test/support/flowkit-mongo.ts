// Artifacts in MongoDB with tasks as a coordinator keeps them there, for tests that drive the coordinator's side by hand.

import { randomUUID } from "node:crypto";
import { connectMongo, type MongoDb } from "../../src/protocols/flowkit/wire/artifacts/mongo-db.ts";
import { mongoArtifacts } from "../../src/protocols/flowkit/worker/artifacts/mongo.ts";
import type { ArtifactWorld } from "../contract/flowkit-artifacts.ts";
import { sharedMongo } from "./mongo.ts";

export interface MongoWorld extends ArtifactWorld {
  readonly db: MongoDb;
}

export async function openMongo(): Promise<MongoWorld> {
  const { db, close } = await connectMongo(await sharedMongo());
  const store = mongoArtifacts(db, { close });
  const tasks = db.collection("tasks");
  const set = (id: string, node: string, fields: Record<string, unknown>) => {
    const update = Object.fromEntries(Object.entries(fields).map(([field, value]) => [`graph.nodes.$.${field}`, value]));
    return tasks.updateOne({ id, "graph.nodes.node_id": node }, { $set: update });
  };
  return {
    db,
    store,
    async begin(names) {
      const id = randomUUID();
      const nodes = names.map((node_id) => ({ node_id, type: node_id, status: "running", attempt_epoch: 1 }));
      await tasks.insertMany([
        { id, status: "running", coordinator: { liveness: { state: "ok" } }, graph: { nodes, edges: [], edges_ex: [] } },
      ]);
      return names.map((nodeId) => ({ taskId: id, nodeId, epoch: 1, workerId: "w-1" }));
    },
    async again(attempt) {
      const epoch = attempt.epoch + 1;
      await set(attempt.taskId, attempt.nodeId, { attempt_epoch: epoch });
      return { ...attempt, epoch, workerId: `w-${epoch}` };
    },
    async done(attempt, meta) {
      await store.complete(attempt, meta);
    },
    fail: async ({ taskId, nodeId }) => void (await set(taskId, nodeId, { status: "failed" })),
    cancel: async ({ taskId, nodeId }) => void (await set(taskId, nodeId, { status: "cancelling" })),
    cancelTask: async (id) => void (await tasks.updateOne({ id }, { $set: { "coordinator.cancelled": true } })),
    close: () => store.close(),
  };
}
