// Writes the results of nodes to MongoDB for consumers of other implementations, as FlowKit's coordinator does from the same events. These
// are the partial and complete artifacts that no worker has written there, and `metrics_raw`, each batch once.

import type { JsonObject } from "../../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../../core/json/json-exact.ts";
import { type Hold, isOpen, type TaskRow } from "../../../../engine/board/task.ts";
import type { Part, PartStore } from "../../../../engine/part/store.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import { pagesOf } from "../../wire/artifacts/mongo-bounds.ts";
import { insertNew, type MongoDb, type MongoDocument, mongoCall, plainObject } from "../../wire/artifacts/mongo-db.ts";
import { finalUid } from "../../wire/shapes.ts";
import { failedBatches } from "../coordinator/dead-letters.ts";
import { partGroups, partUidOf } from "../part-groups.ts";
import { metaOf } from "./part-artifacts.ts";

export interface MirrorPartsOptions {
  readonly db: MongoDb;
  readonly parts: PartStore;
  readonly documents: Pick<DocumentStore, "document">;
  /** Called when a task has new parts. */
  changed(task: TaskRow): void;
}

/** Parts in one insert. */
const pageParts = 500;

interface Followed {
  /** Written up to this part. After a restart everything is written again, which changes nothing. */
  after: number;
  unwatch(): void;
}

export class MirrorParts {
  readonly #options: MirrorPartsOptions;
  readonly #followed = new Map<string, Followed>();

  constructor(options: MirrorPartsOptions) {
    this.#options = options;
  }

  /** Must be called when a task has changed: tasks in progress are watched. */
  follow(task: TaskRow): void {
    if (this.#followed.has(task.id) || !isOpen(task.state) || task.state === "queued") return;
    this.#followed.set(task.id, { after: 0, unwatch: this.#options.parts.watch(task.id, () => this.#options.changed(task)) });
  }

  /** Writes the parts since the last call, and the end of the task. */
  async write(taskId: string, nodeId: string, task: TaskRow): Promise<void> {
    const followed = this.#followed.get(task.id);
    let after = followed?.after ?? 0;
    for (;;) {
      const { parts } = await this.#options.parts.read(task.id, after, pageParts);
      const last = parts.at(-1);
      if (last === undefined) break;
      await this.#partial(taskId, nodeId, parts);
      after = last.sequence;
      if (followed !== undefined) followed.after = after;
    }
    await this.#failed(taskId, nodeId, task);
    if (task.state === "done") await this.#complete(taskId, nodeId, task);
    if (!isOpen(task.state)) this.#drop(task.id);
  }

  /** Removes the results of an earlier life of a step that begins again. */
  async forget(taskId: string, nodeId: string, task: TaskRow): Promise<void> {
    this.#drop(task.id);
    const earlier = { $lt: task.grant };
    const { db } = this.#options;
    const [task_id, node_id] = [taskId, nodeId];
    await mongoCall("forget artifacts", async () => {
      await db.collection("artifacts").deleteMany({ task_id, node_id, attempt_epoch: earlier });
      await db.collection("metrics_raw").deleteMany({ task_id, node_id, attempt_epoch: earlier });
      await db.collection("stream_progress").deleteMany({ task_id, from_node: node_id });
      await db.collection("stream_progress").deleteMany({ task_id, consumer_node: node_id, epoch: { $not: { $gte: task.grant } } });
    });
  }

  /**
   * Records parts whose events arrived after the hold of the attempt had expired. Workers have stored these parts in MongoDB. The attempt
   * has finished with its input, so the next attempt does not make them again. Costs one count when nothing is missing.
   */
  async adopt(task_id: string, node_id: string, hold: Hold): Promise<void> {
    const { db, parts } = this.#options;
    const artifacts = db.collection("artifacts");
    const filter = { task_id, node_id, status: "partial" };
    const there = await mongoCall("count artifacts", () => artifacts.countDocuments(filter));
    if (there <= (await parts.count(hold.taskId))) return;
    const cursor = artifacts.find(filter, { projection: { _id: 0, batch_uid: 1, meta: 1 }, sort: { created_at: 1 }, batchSize: pageParts });
    for await (const page of pagesOf("read artifacts", cursor)) {
      const found = page.map(({ batch_uid, meta }) => {
        return { uid: partUidOf(String(batch_uid)), value: writeExact(plainObject(meta, parseExact)) };
      });
      for (const group of partGroups(found)) await parts.put(hold, group);
    }
  }

  close(): void {
    for (const id of [...this.#followed.keys()]) this.#drop(id);
  }

  async #partial(task_id: string, node_id: string, parts: readonly Part[]): Promise<void> {
    const documents = parts.map(({ uid: batch_uid, value, grant: attempt_epoch, at, sequence }) => {
      const key = { task_id, node_id, batch_uid };
      const created_at = new Date(at);
      const meta = metaOf(value, parseExact);
      return {
        artifact: { ...key, attempt_epoch, status: "partial", meta, artifacts_ref: key, created_at, updated_at: created_at, sequence },
        metrics: { ...key, metrics: meta, attempt_epoch, ts_ms: at, created_at },
      };
    });
    const { db } = this.#options;
    // A worker with MongoDB has written its artifacts itself.
    const artifacts = documents.map(({ artifact }) => artifact);
    const metrics = documents.map((document) => document.metrics);
    await this.#revive("artifacts", { status: "failed" }, await insertNew(db, "artifacts", artifacts), { error: "" });
    await this.#revive("metrics_raw", { failed: true }, await insertNew(db, "metrics_raw", metrics), { failed: "", reason: "" });
  }

  /** Removes the failure record of a batch that has succeeded later. In the reference it stays. */
  async #revive(collection: string, failed: MongoDocument, documents: readonly MongoDocument[], gone: MongoDocument): Promise<void> {
    const [first] = documents;
    if (first === undefined) return;
    const { task_id, node_id } = first;
    const records = this.#options.db.collection(collection);
    // In nearly all cases they were already written.
    const any = await mongoCall("look for failed batches", () =>
      records.findOne({ task_id, node_id, ...failed }, { projection: { _id: 1 } }),
    );
    if (any === null) return;
    const operations = documents.map(({ _id, ...document }) => {
      const { batch_uid } = document;
      return { updateOne: { filter: { task_id, node_id, batch_uid, ...failed }, update: { $set: document, $unset: gone } } };
    });
    await mongoCall("keep documents", () => records.bulkWrite(operations, { ordered: false }));
  }

  /** Written only when there is no record of the batch: a batch that has succeeded once stays succeeded. */
  async #failed(task_id: string, node_id: string, task: TaskRow): Promise<void> {
    const { db, documents } = this.#options;
    const failed = await failedBatches(documents, task);
    if (failed.length === 0) return;
    const at = task.endedAt ?? task.queuedAt;
    const created_at = new Date(at);
    const rows = failed.map(({ batch_uid, reason_code: reason, attempt_epoch }) => {
      const key = { task_id, node_id, batch_uid };
      return {
        artifact: { ...key, attempt_epoch, status: "failed", error: reason, created_at, updated_at: created_at },
        metrics: { ...key, metrics: {}, failed: true, reason, attempt_epoch, ts_ms: at, created_at },
      };
    });
    await insertNew(
      db,
      "artifacts",
      rows.map(({ artifact }) => artifact),
    );
    await insertNew(
      db,
      "metrics_raw",
      rows.map(({ metrics }) => metrics),
    );
  }

  async #complete(task_id: string, node_id: string, task: TaskRow): Promise<void> {
    const { db } = this.#options;
    const created_at = new Date(task.endedAt ?? 0);
    const meta: JsonObject = task.output === null ? {} : metaOf(task.output, parseExact);
    const fresh: MongoDocument = { status: "complete", meta, attempt_epoch: task.grant, created_at, updated_at: created_at };
    const key = { task_id, node_id, batch_uid: { $exists: false } };
    await mongoCall("keep a complete artifact", () => db.collection("artifacts").updateOne(key, { $setOnInsert: fresh }, { upsert: true }));
    if (Object.keys(meta).length === 0) return;
    const row = { task_id, node_id, batch_uid: finalUid, metrics: meta, attempt_epoch: task.grant, final: true };
    await insertNew(db, "metrics_raw", [{ ...row, ts_ms: task.endedAt ?? 0, created_at }]);
  }

  #drop(taskId: string): void {
    this.#followed.get(taskId)?.unwatch();
    this.#followed.delete(taskId);
  }
}
