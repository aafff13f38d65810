// Artifacts in MongoDB, in the documents of FlowKit's own workers, so that both kinds of workers can work on one task. README.md of this
// protocol lists them. Our additions: `attempt_epoch` is the fence of our writers, `sequence` keeps the order of parts with the same time,
// and claims in `stream_progress` have the attempt (`epoch`) and a `state`. Other writers do not know these fields and cannot be fenced.

import { type Clock, systemClock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import type { FailureListener } from "../../../../core/failure-listener.ts";
import { isObject, type JsonObject } from "../../../../core/json/json.ts";
import type { ArtifactStore, Attempt, PartialArtifact, PartRef, ReadOptions, UpstreamPart } from "../../wire/artifacts/artifacts.ts";
import { checkParts } from "../../wire/artifacts/check.ts";
import { boundedDb } from "../../wire/artifacts/mongo-bounds.ts";
import {
  connectMongo,
  ensureIndexes,
  insertNew,
  isDuplicate,
  type MongoDb,
  type MongoDocument,
  type MongoOptions,
  type MongoUpdate,
  mongoCall,
  plain,
  plainObject,
} from "../../wire/artifacts/mongo-db.ts";
import { claimKey, isCancelled, MongoReader, nodeOf, taskFlags } from "../../wire/artifacts/mongo-read.ts";
import type { ActiveRun } from "../../wire/shapes.ts";

export interface MongoArtifactsOptions {
  readonly clock?: Clock;
  /** Is notified of failures that are retried, and of their end. */
  readonly trouble?: FailureListener;
}

/** Opens a connection; `close` closes it. */
export async function openMongoArtifacts(mongo: MongoOptions, options: MongoArtifactsOptions = {}): Promise<ArtifactStore> {
  const { db, close } = await connectMongo(mongo);
  return mongoArtifacts(db, { ...options, close });
}

/** Uses a database that the caller opens and closes. */
export function mongoArtifacts(db: MongoDb, options: MongoArtifactsOptions & { close?: () => Promise<void> } = {}): ArtifactStore {
  return new MongoArtifacts(db, options);
}

class MongoArtifacts implements ArtifactStore {
  readonly name: string;
  readonly #db: MongoDb;
  readonly #clock: Clock;
  readonly #trouble: FailureListener | undefined;
  readonly #release: () => Promise<void>;
  readonly #closed = new AbortController();
  #indexed: Promise<void> | undefined;
  #sequence = 0;

  constructor(
    db: MongoDb,
    { clock = systemClock, trouble, close = async () => {} }: MongoArtifactsOptions & { close?: () => Promise<void> },
  ) {
    this.#db = boundedDb(db, { clock, signal: this.#closed.signal });
    this.#clock = clock;
    this.#trouble = trouble;
    this.#release = close;
    this.name = `MongoDB (${db.databaseName})`;
  }

  async putPartials(attempt: Attempt, parts: readonly PartialArtifact[]): Promise<boolean> {
    checkParts(parts);
    if (parts.length === 0) return true;
    const { taskId: task_id, nodeId: node_id, epoch: attempt_epoch, workerId: worker_id } = attempt;
    const now = new Date(this.#clock.now());
    const common = { task_id, node_id, attempt_epoch, status: "partial", worker_id, payload: null, created_at: now, updated_at: now };
    // A uid that occurs twice in the list is one part, with the last value.
    const metas = new Map(parts.map(({ uid, meta }) => [uid, meta]));
    const documents = [...metas].map(([batch_uid, meta]) => ({ ...common, batch_uid, meta, sequence: this.#sequence++ }));
    await this.#ready();
    const there = await insertNew(this.#db, "artifacts", documents);
    return there.length === 0 || this.#replace(there, attempt_epoch);
  }

  async complete(attempt: Attempt, meta: JsonObject): Promise<boolean> {
    const { taskId: task_id, nodeId: node_id, epoch: attempt_epoch, workerId: worker_id } = attempt;
    const now = new Date(this.#clock.now());
    await this.#ready();
    if (await this.#overtaken(attempt)) return false;
    try {
      await mongoCall("keep a complete artifact", () =>
        this.#artifacts.updateOne(
          { task_id, node_id, batch_uid: { $exists: false }, ...notAfter(attempt_epoch) },
          { $set: { status: "complete", meta, updated_at: now, attempt_epoch }, $setOnInsert: { worker_id, created_at: now } },
          { upsert: true },
        ),
      );
      return true;
    } catch (error) {
      // The unique index already has a complete artifact, which a later attempt has written.
      if (isDuplicate(error)) return false;
      throw error;
    }
  }

  /** True when a later attempt has claims: this attempt must not be marked as complete. */
  async #overtaken({ taskId: task_id, nodeId: consumer_node, epoch }: Attempt): Promise<boolean> {
    const later = { task_id, consumer_node, epoch: { $gt: epoch } };
    return (
      (await mongoCall("look for claims", () => this.#db.collection("stream_progress").findOne(later, { projection: { _id: 1 } }))) !== null
    );
  }

  async isComplete(task_id: string, node_id: string): Promise<boolean> {
    const wanted = { task_id, node_id, status: "complete" };
    return (await mongoCall("look for an artifact", () => this.#artifacts.findOne(wanted, { projection: { _id: 1 } }))) !== null;
  }

  async *read(consumer: Attempt, sources: readonly string[], options: ReadOptions): AsyncGenerator<UpstreamPart, void> {
    const signal = AbortSignal.any([options.signal, this.#closed.signal]);
    const parts = { db: this.#db, clock: this.#clock, trouble: this.#trouble, ready: () => this.#ready() };
    yield* new MongoReader({ ...parts, consumer, sources, options: { ...options, signal } }).parts();
  }

  /** Does not check the attempt: the caller has stored its result for the part, so it is finished in any case. */
  async finish(consumer: Attempt, parts: readonly PartRef[]): Promise<boolean> {
    checkParts(parts);
    if (parts.length === 0) return true;
    const update = { $set: { state: "processed", processed_at: new Date(this.#clock.now()) } };
    const operations = parts.map(({ fromNode, uid }) => ({ updateOne: { filter: claimKey(consumer, fromNode, uid), update } }));
    const { matchedCount } = await mongoCall("mark parts as processed", () =>
      this.#db.collection("stream_progress").bulkWrite(operations, { ordered: false }),
    );
    // A missing claim was released by a later attempt.
    return matchedCount === parts.length;
  }

  async cancelled(taskId: string, nodeId: string): Promise<boolean> {
    const task = await mongoCall("read a task", () => this.#db.collection("tasks").findOne({ id: taskId }, { projection: taskFlags }));
    if (task === null) return false;
    const node = nodeOf(task, nodeId);
    return isCancelled(task) || isCancelled(node) || node?.status === "cancelling";
  }

  async epochOf(taskId: string, nodeId: string): Promise<number | null> {
    const projection = { _id: 0, "graph.nodes.node_id": 1, "graph.nodes.attempt_epoch": 1 };
    const task = await mongoCall("read a task", () => this.#db.collection("tasks").findOne({ id: taskId }, { projection }));
    const epoch = task === null ? undefined : plain(nodeOf(task, nodeId)?.attempt_epoch);
    return typeof epoch === "number" ? epoch : null;
  }

  async loadState(workerId: string): Promise<ActiveRun | null> {
    const found = await mongoCall("read a worker's state", () => this.#db.collection("worker_state").findOne({ _id: workerId }));
    return isObject(found?.active_run) ? (plain(found.active_run) as unknown as ActiveRun) : null;
  }

  async saveState(workerId: string, run: ActiveRun | null): Promise<void> {
    await this.#ready();
    const update = { $set: { active_run: run, updated_at: new Date(this.#clock.now()) } };
    await mongoCall("keep a worker's state", () =>
      this.#db.collection("worker_state").updateOne({ _id: workerId }, update, { upsert: true }),
    );
  }

  async task(taskId: string): Promise<JsonObject | null> {
    const found = await mongoCall("read a task", () => this.#db.collection("tasks").findOne({ id: taskId }, { projection: { _id: 0 } }));
    return found === null ? null : plainObject(found);
  }

  async close(): Promise<void> {
    this.#closed.abort(new LongshoreError("LONGSHORE_CLOSED", `${this.name} was closed.`));
    await this.#release();
  }

  get #artifacts() {
    return this.#db.collection("artifacts");
  }

  /**
   * Gives existing parts their new value. Returns false when a later attempt has written one of them. A document that was no part before,
   * such as a failed batch, gets its place in the stream.
   */
  async #replace(documents: readonly MongoDocument[], epoch: number): Promise<boolean> {
    const operations = documents.map(({ task_id, node_id, batch_uid, meta, worker_id, updated_at, created_at, sequence }) => {
      const filter = { task_id, node_id, batch_uid, ...notAfter(epoch) };
      const value = { meta, worker_id, updated_at, attempt_epoch: epoch };
      const revival = { $set: { ...value, status: "partial", created_at, sequence }, $unset: { error: "" } };
      return {
        revive: { updateOne: { filter: { ...filter, status: { $ne: "partial" } }, update: revival } },
        renew: { updateOne: { filter: { ...filter, status: "partial" }, update: { $set: value } } },
      };
    });
    const renewed = async () => (await this.#change(operations.map(({ renew }) => renew))) === documents.length;
    // In nearly all cases each document is a part already, and nothing else is needed.
    if (await renewed()) return true;
    await this.#change(operations.map(({ revive }) => revive));
    // Now each document is a part. If a document is not found, it has a later epoch.
    return renewed();
  }

  async #change(operations: MongoUpdate[]): Promise<number> {
    return (await mongoCall("replace artifacts", () => this.#artifacts.bulkWrite(operations, { ordered: false }))).matchedCount;
  }

  /** Creates the indexes once, before the first write; tries again after a failure. */
  #ready(): Promise<void> {
    this.#indexed ??= mongoCall("create indexes", () => ensureIndexes(this.#db)).catch((error) => {
      this.#indexed = undefined;
      throw error;
    });
    return this.#indexed;
  }
}

/** Matches documents of this attempt or an earlier one, and documents without an attempt. */
function notAfter(epoch: number): MongoDocument {
  return { attempt_epoch: { $not: { $gt: epoch } } };
}
