// Copies to MongoDB the data that other implementations read there: the documents of `tasks`, and the results of nodes. Our own records are
// authoritative. A document is built from them for each write, one write at a time, so that writes cannot overtake each other. A failed
// write is repeated with a new document.
//
// A crash loses nothing. At the start, these runs are mirrored again: every open run, every run whose document does not show its end, and
// every run that is newer than the last time at which everything was mirrored. This time is stored in MongoDB, so it cannot be ahead of the
// documents.

import { type Clock, pause } from "../../../../core/clock.ts";
import { isClosing, isTransient, LongshoreError } from "../../../../core/errors.ts";
import type { FailureListener } from "../../../../core/failure-listener.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import type { Hold, TaskRow } from "../../../../engine/board/task.ts";
import { isOpen } from "../../../../engine/board/task.ts";
import type { PartStore } from "../../../../engine/part/store.ts";
import type { Definition } from "../../../../engine/run/dialect.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { Plan } from "../../../../engine/run/plan.ts";
import { pageMax, type Reader } from "../../../../engine/run/reader.ts";
import { isRunOpen, type Run, taskIdOf } from "../../../../engine/run/run.ts";
import type { Runs } from "../../../../engine/run/runs.ts";
import { boundedDb, pagesOf } from "../../wire/artifacts/mongo-bounds.ts";
import { ensureIndexes, type MongoDb, type MongoDocument, type MongoIndex, mongoCall, plainObject } from "../../wire/artifacts/mongo-db.ts";
import { releaseClaims } from "../../wire/artifacts/mongo-read.ts";
import { isGraphRun } from "../coordinator/tasks.ts";
import { aggregates, nodeDocument, summaryDocument, taskDocument, withoutTexts } from "../document.ts";
import { lastErrors } from "../last-errors.ts";
import { MirrorParts } from "./mirror-parts.ts";
import { fileOf, MirrorPruning } from "./mirror-pruning.ts";

export interface MirrorOptions {
  readonly db: MongoDb;
  readonly clock: Clock;
  readonly runs: Pick<Runs, "run" | "definitionById">;
  readonly reader: Pick<Reader, "runs" | "records" | "task" | "attempts">;
  readonly parts: PartStore;
  readonly documents: Pick<DocumentStore, "document" | "keepDocument">;
  plan(definition: Definition): Plan;
  listen(listener: { task?(task: TaskRow): void; run?(run: Run): void }): () => void;
  /** Distinguishes this server from others on the same database. */
  readonly server: string;
  /** The workers that have announced themselves. */
  roster?(): readonly MirroredWorker[] | Promise<readonly MirroredWorker[]>;
  readonly trouble?: FailureListener;
}

export interface MirroredWorker {
  readonly worker_id: string;
  readonly roles: readonly string[];
  readonly version: string;
  readonly capacity: number;
  readonly status: "online" | "offline";
  readonly seenAt: number;
}

/** What has changed in a run since its last write. */
interface Marks {
  whole: boolean;
  readonly nodes: Set<number>;
}

/** The first pause before a failed write is repeated; it doubles up to `retryMsMax`. */
const retryMs = 200;
const retryMsMax = 10_000;
/** How often the workers, and the time up to which everything is mirrored, are written. */
const beatMs = 15_000;

/** A run that is older than this is committed and was reported. */
const commitMsMax = 60_000;
/** How long closing waits for current writes. */
const closeMs = 2_000;

const coordinatorIndexes: readonly MongoIndex[] = [
  ["tasks", ["status", "updated_at"], { name: "ix_task_status_updated" }],
  ["tasks", ["mirrored_by", "status"], { name: "ix_task_mirrored", sparse: true }],
  ["tasks", ["mirrored_from", "id"], { name: "ix_task_mirrored_from", sparse: true }],
  ["metrics_raw", ["task_id", "node_id", "batch_uid"], { name: "uniq_metrics_batch", unique: true }],
  ["metrics_raw", ["created_at"], { name: "ttl_metrics_raw", expireAfterSeconds: 1_209_600 }],
  ["worker_registry", ["worker_id"], { name: "uniq_worker", unique: true }],
];

const what = "keeping tasks in MongoDB";

export class Mirror {
  readonly #options: MirrorOptions;
  readonly #parts: MirrorParts;
  readonly #marks = new Map<string, Marks>();
  /** Runs of graphs that are not settled. */
  readonly #known = new Set<string>();
  readonly #closing = new AbortController();
  /** Aborts calls that MongoDB has not answered. */
  readonly #cut = new AbortController();
  #stopListening: () => void = () => {};
  #stopBeat: () => void = () => {};
  readonly #pruning: MirrorPruning;
  /** Distinguishes this data file from any other. */
  #file = "";
  #recovered = false;
  #beatDue = true;
  #pumping: Promise<void> | null = null;
  /** One write at a time. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: MirrorOptions) {
    const { clock, runs, parts, documents } = options;
    const db = boundedDb(options.db, { clock, signal: this.#cut.signal });
    this.#options = { ...options, db };
    const changed = (task: TaskRow) => this.#changed(task);
    this.#pruning = new MirrorPruning({ db, runs });
    this.#parts = new MirrorParts({ db, parts, documents, changed });
  }

  /** Starts mirroring. It continues by itself, even when MongoDB is not reachable for a long time. */
  start(): void {
    this.#stopListening = this.#options.listen({ task: (task) => this.#changed(task), run: (run) => this.#runChanged(run) });
    this.#beat();
  }

  /** Resolves when all changes so far are written. */
  async settled(): Promise<void> {
    while (this.#pumping !== null) await this.#pumping;
  }

  /** The node's final metrics in MongoDB, when its end was not reported; null when there are none (T53). */
  async completed({ task_id, node_id }: { task_id: string; node_id: string }): Promise<JsonObject | null> {
    const run = await this.#options.runs.run(task_id);
    if (run === undefined) return null;
    // Results of an earlier life of the run are removed first.
    if (run.retries > 0) await this.#alone(() => this.#write(task_id, { whole: true, nodes: new Set() }));
    const artifacts = this.#options.db.collection("artifacts");
    const found = await mongoCall("look for an artifact", () => artifacts.findOne({ task_id, node_id, status: "complete" }));
    return found === null ? null : plainObject(found.meta);
  }

  /** Records parts that a node's workers have stored in MongoDB without a timely event. */
  async adopt({ task_id, node_id }: { task_id: string; node_id: string }, hold: Hold): Promise<void> {
    await this.#parts.adopt(task_id, node_id, hold);
  }

  /**
   * Releases the unfinished claims of earlier attempts of a node, because workers of the reference skip claimed parts. Also writes the next
   * epoch to the document before other pending writes: workers use it to drop outdated commands.
   */
  async release({ task_id, node_id }: { task_id: string; node_id: string }, epoch: number): Promise<void> {
    await releaseClaims(this.#options.db, { task_id, consumer_node: node_id }, epoch);
    await this.caughtUp(task_id);
  }

  /** Resolves when MongoDB has everything that has happened to this task so far: a worker that starts now reads it there. */
  async caughtUp(taskId: string): Promise<void> {
    if (!this.#recovered) {
      this.#wake();
      await this.settled();
    }
    do {
      // The write may be in progress already, and fail.
      const underWay = this.#last;
      await this.#flush(taskId);
      await underWay;
    } while (this.#marks.has(taskId) && !this.#closing.signal.aborted);
  }

  /** Removes the complete artifact of a node that is not complete: readers must not find an end. */
  async reopen({ task_id, node_id }: { task_id: string; node_id: string }): Promise<void> {
    const artifacts = this.#options.db.collection("artifacts");
    await mongoCall("take back a complete artifact", () => artifacts.deleteMany({ task_id, node_id, status: "complete" }));
  }

  /** Changes that are not written by then are written at the next start. */
  async close(): Promise<void> {
    this.#stopListening();
    this.#stopBeat();
    this.#closing.abort();
    this.#parts.close();
    const { clock } = this.#options;
    const disarm = clock.at(clock.now() + closeMs, () => this.#cut.abort(new LongshoreError("LONGSHORE_CLOSED", "The server was closed.")));
    await this.settled();
    await this.#last;
    disarm();
  }

  #runChanged(run: Run): void {
    if (!isGraphRun(run)) return;
    const fresh = !this.#known.has(run.id);
    this.#known.add(run.id);
    this.#mark(run.id, { whole: fresh || !isRunOpen(run.state) });
  }

  #changed(task: TaskRow): void {
    if (task.runId === null || !this.#known.has(task.runId)) return;
    this.#parts.follow(task);
    this.#mark(task.runId, { node: task.node });
  }

  #mark(runId: string, { whole = false, node }: { whole?: boolean; node?: number }): void {
    const marks = this.#marks.get(runId) ?? { whole: false, nodes: new Set() };
    marks.whole ||= whole;
    if (node !== undefined) marks.nodes.add(node);
    this.#marks.set(runId, marks);
    this.#wake();
  }

  #beat(): void {
    this.#beatDue = true;
    this.#wake();
    const { clock } = this.#options;
    this.#stopBeat = clock.at(clock.now() + beatMs, () => this.#beat());
  }

  #wake(): void {
    if (this.#pumping !== null || this.#closing.signal.aborted) return;
    this.#pumping = this.#pump().finally(() => {
      this.#pumping = null;
      if (this.#marks.size > 0) this.#wake();
    });
  }

  /** Never rejects. */
  async #pump(): Promise<void> {
    const { clock, trouble } = this.#options;
    let waitMs = retryMs;
    while (!this.#closing.signal.aborted && (this.#marks.size > 0 || this.#beatDue)) {
      try {
        if (!this.#recovered) await this.#recover();
        for (const runId of [...this.#marks.keys()]) await this.#flush(runId);
        if (this.#beatDue) {
          await this.#pruning.look(this.#file);
          await this.#tell();
        }
        trouble?.working(what);
        waitMs = retryMs;
      } catch (error) {
        if (!isClosing(error)) trouble?.failing(what, error);
        await pause(clock, waitMs, this.#closing.signal);
        waitMs = Math.min(2 * waitMs, retryMsMax);
      }
    }
  }

  async #flush(runId: string): Promise<void> {
    const marks = this.#marks.get(runId);
    if (marks === undefined || this.#closing.signal.aborted) return;
    this.#marks.delete(runId);
    try {
      await this.#alone(() => this.#write(runId, marks));
    } catch (error) {
      // A document that MongoDB never accepts must not delay the others: it is reported, and tried again when the run changes.
      if (!isTransient(error) && !isClosing(error)) return this.#options.trouble?.failing(`keeping the task ${runId} in MongoDB`, error);
      this.#mark(runId, { whole: marks.whole });
      for (const node of marks.nodes) this.#mark(runId, { node });
      throw error;
    }
  }

  #alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#last.then(work, work);
    this.#last = turn.catch(() => undefined);
    return turn;
  }

  async #write(runId: string, { whole, nodes }: Marks): Promise<void> {
    const { runs, plan } = this.#options;
    const run = await runs.run(runId);
    const definition = run === undefined ? undefined : await runs.definitionById(run.definitionId);
    if (run === undefined || definition === undefined) return void this.#known.delete(runId);
    const graph = plan(definition);
    const aggregated = [...nodes].some((node) => aggregates(graph.nodes[node]?.origin) !== undefined);
    if (whole || aggregated || !isRunOpen(run.state)) await this.#writeWhole(run, graph);
    else await this.#writeNodes(run, graph, [...nodes]);
  }

  async #writeWhole(run: Run, plan: Plan): Promise<void> {
    const records: TaskRow[] = [];
    for await (const task of this.#options.reader.records(run.id)) {
      records.push(withoutTexts(task, plan));
      const nodeId = plan.nodes[task.node]?.id;
      if (nodeId === undefined) continue;
      if (run.retries > 0 && (await this.#isRestarted(task))) await this.#parts.forget(run.id, nodeId, task);
      else await this.#parts.write(run.id, nodeId, task);
    }
    const errors = await lastErrors(this.#options.reader, records);
    await this.#set(
      run.id,
      taskDocument(run, plan, records, (ms) => new Date(ms), errors),
    );
    if (!isRunOpen(run.state) && records.every(({ state }) => !isOpen(state))) this.#known.delete(run.id);
  }

  async #writeNodes(run: Run, plan: Plan, nodes: readonly number[]): Promise<void> {
    const moment = (ms: number) => new Date(ms);
    const fields: MongoDocument = summaryDocument(run, moment);
    for (const at of nodes) {
      const node = plan.nodes[at];
      const task = await this.#options.reader.task(taskIdOf(run.id, at));
      if (node === undefined || task === undefined) continue;
      // Its results are written first, because a reader stops reading when it finds that the node is finished.
      await this.#parts.write(run.id, node.id, task);
      const lastError = (await lastErrors(this.#options.reader, [task])).get(task.id);
      fields[`graph.nodes.${at}`] = nodeDocument(node, task, moment, { lastError });
    }
    await this.#set(run.id, fields);
  }

  async #set(id: string, fields: MongoDocument): Promise<void> {
    const { db, server: mirrored_by } = this.#options;
    const update = { $set: { ...fields, mirrored_by, mirrored_from: this.#file }, $currentDate: { updated_at: true } };
    await mongoCall("keep a task", () => db.collection("tasks").updateOne({ id }, update, { upsert: true }));
  }

  /** The step begins again, and no worker has begun it. */
  async #isRestarted({ id, state }: TaskRow): Promise<boolean> {
    return (state === "queued" || state === "offered" || state === "forgotten") && (await this.#options.parts.count(id)) === 0;
  }

  async #recover(): Promise<void> {
    const { db, documents, reader, server } = this.#options;
    this.#file = await fileOf(documents);
    await mongoCall("create indexes", () => ensureIndexes(db));
    await mongoCall("create indexes", () => ensureIndexes(db, coordinatorIndexes));
    const kept = await mongoCall("read what was mirrored", () => db.collection("longshore_mirror").findOne({ _id: server }));
    const until = kept?.until instanceof Date ? kept.until.getTime() : Number.POSITIVE_INFINITY;
    for await (const run of runsOf(reader, "running")) this.#runChanged(run);
    for await (const run of runsOf(reader, "paused")) this.#runChanged(run);
    for await (const run of runsOf(reader)) {
      if (run.createdAt < until) break;
      this.#runChanged(run);
    }
    await this.#unended();
    this.#recovered = true;
  }

  /** Runs that ended while their documents could not be written. */
  async #unended(): Promise<void> {
    const { db, runs, server } = this.#options;
    const open = { mirrored_by: server, status: { $in: ["queued", "running", "deferred", "cancelling"] } };
    const cursor = db.collection("tasks").find(open, { projection: { _id: 0, id: 1 } });
    for await (const page of pagesOf("read tasks", cursor)) {
      for (const { id } of page) {
        const run = typeof id === "string" ? await runs.run(id) : undefined;
        if (run !== undefined) this.#runChanged(run);
      }
    }
  }

  /** Writes the workers, and the time up to which everything is mirrored. */
  async #tell(): Promise<void> {
    const { db, clock, server, roster } = this.#options;
    const until = new Date(clock.now() - commitMsMax);
    for (const { worker_id, roles, version, capacity, status, seenAt } of (await roster?.()) ?? []) {
      const fields = {
        type: roles.join(","),
        capabilities: { roles: [...roles] },
        version,
        status,
        last_seen: new Date(seenAt),
        capacity: { tasks: capacity },
      };
      const registry = db.collection("worker_registry");
      await mongoCall("keep a worker", () => registry.updateOne({ worker_id }, { $set: fields }, { upsert: true }));
    }
    this.#beatDue = false;
    if (this.#marks.size > 0) return;
    const mirror = db.collection("longshore_mirror");
    await mongoCall("keep what was mirrored", () => mirror.updateOne({ _id: server }, { $set: { until } }, { upsert: true }));
  }
}

/** Newest first. */
async function* runsOf(reader: Pick<Reader, "runs">, state?: Run["state"]): AsyncGenerator<Run> {
  for (let before: string | undefined; ; ) {
    const page = { limit: pageMax, ...(state === undefined ? {} : { state }), ...(before === undefined ? {} : { before }) };
    const { items, next } = await reader.runs(page);
    yield* items;
    if (next === null) return;
    before = next;
  }
}
