// Reads a stream of parts from MongoDB, which cannot wake its readers. So it works in rounds: each round reads every source, and a pause
// follows an empty round.
//
// A source is read in the order of `created_at`, from the end of the last scan. This alone would miss a part that is written late with an
// earlier time, for example because of another clock. So an empty round also compares counts. When not every part has a claim of this
// consumer, the source is read again from its first part. A claim is a row that can be inserted only once. So a part that is read twice is
// delivered once.
//
// A new attempt first releases the claims of earlier attempts on parts that they did not process. It does this again before it ends,
// because an earlier attempt may continue for a while.

import { type Clock, pause } from "../../../../core/clock.ts";
import { isTransient } from "../../../../core/errors.ts";
import type { FailureListener } from "../../../../core/failure-listener.ts";
import { isObject } from "../../../../core/json/json.ts";
import { untilAborted } from "../../../../core/until-aborted.ts";
import { type Attempt, type ReadOptions, UpstreamFailed, type UpstreamPart, unknownSource } from "./artifacts.ts";
import { boundedDb, pagesOf } from "./mongo-bounds.ts";
import { insertNew, isCursorGone, type MongoDb, type MongoDocument, mongoCall, plainObject } from "./mongo-db.ts";

export interface MongoReaderDeps {
  readonly db: MongoDb;
  readonly consumer: Attempt;
  readonly sources: readonly string[];
  readonly options: ReadOptions;
  readonly clock: Clock;
  /** Resolves when the indexes exist. Without them, a claim could be made twice. */
  readonly ready: () => Promise<void>;
  readonly trouble: FailureListener | undefined;
}

/** Maximum number of parts in one reply of the server, and of claims in one insert. */
const pageParts = 500;

/** How far one source has been read. */
interface Line {
  readonly node: string;
  /** The current scan: pages in the order in which they were written. */
  scan: AsyncGenerator<UpstreamPart[], void> | null;
  /** Whether the scan has found a part. */
  found: boolean;
  /** Whether the source was complete when the scan began. */
  complete: boolean;
  /** The scan began with the first part, after the source was complete: it finds all parts. */
  whole: boolean;
  /** Where the next scan begins; null for the first part. */
  from: Date | null;
  /** Parts at the time `from` that were read already; the next scan begins with that time. */
  seen: Set<unknown>;
  /** Parts whose claim was sent without a reply. If such a claim was stored, it is ours. */
  readonly doubted: Set<unknown>;
  /** The number of unclaimed parts when the source was last read from its first part. */
  gap: number;
  over: boolean;
}

export class MongoReader {
  readonly #deps: MongoReaderDeps;
  readonly #lines: Line[];
  /** Sources that the coordinator marks as finished, with or without a complete artifact. */
  readonly #finished = new Set<string>();

  constructor(deps: MongoReaderDeps) {
    const { clock, options } = deps;
    this.#deps = { ...deps, db: boundedDb(deps.db, { clock, signal: options.signal }) };
    const fresh = { scan: null, found: false, complete: false, whole: false, from: null, gap: 0, over: false };
    this.#lines = [...new Set(deps.sources)].map((node) => ({ ...fresh, node, seen: new Set(), doubted: new Set() }));
  }

  async *parts(): AsyncGenerator<UpstreamPart, void> {
    const { clock, trouble, options } = this.#deps;
    const what = `reading parts for ${this.#deps.consumer.nodeId} from MongoDB`;
    let waitMs = options.pollMs;
    let begun = false;
    /** The sources were read again from their first part without a result. The next such read waits first. */
    let inVain = false;
    const wait = async () => {
      await pause(clock, waitMs, options.signal);
      waitMs = Math.min(2 * waitMs, options.backoffMaxMs);
    };
    try {
      for (;;) {
        options.signal.throwIfAborted();
        try {
          if (!begun) {
            await untilAborted(this.#deps.ready(), options.signal);
            await this.#release();
            begun = true;
          }
          let given = false;
          for await (const page of this.#round()) {
            if (page.length === 0) continue;
            given = true;
            inVain = false;
            waitMs = options.pollMs;
            yield* page;
          }
          trouble?.working(what);
          if (given || this.#lines.some(({ scan }) => scan !== null)) continue;
          const again = await this.#again();
          if (again && !inVain) {
            inVain = true;
            continue;
          }
          if (this.#lines.every(({ over }) => over)) return;
          if (!again) await this.#look();
          await wait();
        } catch (error) {
          if (!isTransient(error)) throw error;
          await this.#leave();
          trouble?.failing(what, error);
          await wait();
        }
      }
    } finally {
      await this.#leave();
    }
  }

  async #leave(): Promise<void> {
    for (const line of this.#lines) {
      await line.scan?.return();
      line.scan = null;
    }
  }

  /** The next page of every source that has one. */
  async *#round(): AsyncGenerator<UpstreamPart[], void> {
    const open = this.#lines.filter(({ over }) => !over);
    // Read before a scan begins, so that no part can be written after it.
    const complete = open.some(({ scan }) => scan === null) ? await this.#complete() : new Set();
    for (const line of open) {
      if (line.scan === null) {
        line.complete = complete.has(line.node);
        line.whole ||= line.complete && line.from === null;
        line.scan = this.#scan(line);
        line.found = false;
      }
      const page = await this.#next(line, line.scan);
      if (page !== undefined) yield page;
    }
  }

  async #next(line: Line, scan: AsyncGenerator<UpstreamPart[], void>): Promise<UpstreamPart[] | undefined> {
    try {
      const { done, value } = await scan.next();
      line.found = true;
      if (!done) return value;
      line.scan = null;
      return undefined;
    } catch (error) {
      if (!isCursorGone(error)) throw error;
      // The consumer took so long for a page that the server closed the cursor. Another scan continues here.
      line.scan = line.found ? this.#scan(line) : null;
      line.found = false;
      return undefined;
    }
  }

  async *#scan(line: Line): AsyncGenerator<UpstreamPart[], void> {
    const { db, consumer } = this.#deps;
    const filter: MongoDocument = { task_id: consumer.taskId, node_id: line.node, status: "partial" };
    if (line.from !== null) filter.created_at = { $gte: line.from };
    const cursor = db.collection("artifacts").find(filter, {
      sort: { created_at: 1, sequence: 1 },
      projection: { _id: 0, batch_uid: 1, meta: 1, created_at: 1 },
      batchSize: pageParts,
    });
    for await (const documents of pagesOf("read artifacts", cursor)) {
      const page = unseen(line, documents);
      const claimed = await this.#claim(line, page);
      if (page.length > 0) yield claimed.map(({ batch_uid, meta }) => partOf(line.node, batch_uid, meta));
    }
  }

  /** Claims the parts of a page. Returns those that are now ours. */
  async #claim(line: Line, page: MongoDocument[]): Promise<MongoDocument[]> {
    const { db, consumer, clock } = this.#deps;
    const { node: fromNode, doubted } = line;
    const { epoch, workerId: worker_id } = consumer;
    const claimed_at = new Date(clock.now());
    const rows = page.map(({ batch_uid }) => ({
      ...claimKey(consumer, fromNode, batch_uid as string),
      ...{ claimed_at, epoch, worker_id, state: "claimed" },
    }));
    try {
      const claimed = new Set((await insertNew(db, "stream_progress", rows)).map(({ batch_uid }) => batch_uid));
      for (const uid of await this.#own(
        fromNode,
        [...claimed].filter((uid) => doubted.has(uid)),
      ))
        claimed.delete(uid);
      for (const { batch_uid } of page) doubted.delete(batch_uid);
      return page.filter(({ batch_uid }) => !claimed.has(batch_uid));
    } catch (error) {
      for (const { batch_uid } of page) doubted.add(batch_uid);
      // The parts of this page were not delivered, so they must be found again.
      Object.assign(line, fromTheFirst());
      throw error;
    }
  }

  /** Which of these parts this attempt has claimed. */
  async #own(from_node: string, uids: readonly unknown[]): Promise<unknown[]> {
    if (uids.length === 0) return [];
    const { db, consumer } = this.#deps;
    const { taskId: task_id, nodeId: consumer_node, epoch, workerId: worker_id } = consumer;
    const filter = { task_id, consumer_node, from_node, batch_uid: { $in: uids }, epoch, worker_id };
    const own: unknown[] = [];
    const cursor = db.collection("stream_progress").find(filter, { projection: { _id: 0, batch_uid: 1 }, limit: uids.length });
    for await (const page of pagesOf("look for claims", cursor)) own.push(...page.map(({ batch_uid }) => batch_uid));
    return own;
  }

  async #release(): Promise<number> {
    const { db, consumer, sources } = this.#deps;
    const { taskId: task_id, nodeId: consumer_node, epoch } = consumer;
    return releaseClaims(db, { task_id, consumer_node, from_node: { $in: [...sources] } }, epoch);
  }

  /**
   * To be called after an empty round. Returns whether a source must be read from its first part. Marks sources that were read completely.
   */
  async #again(): Promise<boolean> {
    const released = (await this.#release()) > 0;
    let again = false;
    for (const line of this.#lines) {
      if (line.over) continue;
      const gap = await this.#left(line.node);
      if (line.complete && gap <= 0) {
        line.over = true;
      } else if (released || line.complete || gap !== line.gap) {
        // Tries at once, except after a failed try: earlier attempts hold claims, and need time to notice that they were replaced.
        again ||= released || !line.whole || gap !== line.gap;
        Object.assign(line, { ...fromTheFirst(), gap });
      }
    }
    return again;
  }

  /**
   * The number of parts that are left: not processed, and not claimed by this attempt or a later one. A claim of an earlier attempt does
   * not count, because it may be released and made again at any time. The counted claims are permanent, so this number never rises for
   * parts that exist already.
   */
  async #left(node_id: string): Promise<number> {
    const { db, consumer } = this.#deps;
    const { taskId: task_id, nodeId: consumer_node, epoch } = consumer;
    const lasting = [{ state: "processed" }, { epoch: { $gte: epoch } }];
    const [parts, claims] = await mongoCall("count parts", () =>
      Promise.all([
        db.collection("artifacts").countDocuments({ task_id, node_id, status: "partial", batch_uid: { $type: "string" } }),
        db.collection("stream_progress").countDocuments({ task_id, consumer_node, from_node: node_id, $or: lasting }),
      ]),
    );
    return parts - claims;
  }

  async #complete(): Promise<ReadonlySet<unknown>> {
    const { db, consumer, sources, options } = this.#deps;
    if (!options.eofOnTaskDone) return new Set();
    const complete = new Set<unknown>(this.#finished);
    const cursor = db
      .collection("artifacts")
      .find({ task_id: consumer.taskId, node_id: { $in: [...sources] }, status: "complete" }, { projection: { _id: 0, node_id: 1 } });
    for await (const page of pagesOf("look for complete artifacts", cursor)) {
      for (const { node_id } of page) if (sources.includes(node_id as string)) complete.add(node_id);
      if (sources.every((node) => complete.has(node))) break;
    }
    return complete.size === this.#finished.size ? complete : this.#confirmed(complete);
  }

  /**
   * The complete sources. When our coordinator maintains the task, it must also have marked the source as finished. It does this after it
   * has stored everything that the node has produced; other workers mark a node as complete while its last parts are still on their way.
   */
  async #confirmed(complete: ReadonlySet<unknown>): Promise<ReadonlySet<unknown>> {
    const { db, consumer } = this.#deps;
    const projection = { ...taskFlags, mirrored_by: 1 };
    const task = await mongoCall("read a task", () => db.collection("tasks").findOne({ id: consumer.taskId }, { projection }));
    if (typeof task?.mirrored_by !== "string") return complete;
    return new Set([...complete].filter((node) => (nodeOf(task, String(node))?.status ?? "finished") === "finished"));
  }

  /**
   * Reads the coordinator's state of the sources that deliver nothing. A cancel of the whole task is not read here, because this consumer
   * gets its own signal.
   */
  async #look(): Promise<void> {
    const { db, consumer } = this.#deps;
    const task = await mongoCall("read a task", () => db.collection("tasks").findOne({ id: consumer.taskId }, { projection: taskFlags }));
    if (task === null || isCancelled(task)) return;
    for (const { node, from } of this.#lines.filter(({ over, complete }) => !over && !complete)) {
      const found = nodeOf(task, node);
      // The name may not be that of a node: a coordinator function may have stored something under it.
      if (found === undefined && from === null) throw unknownSource(consumer.taskId, node);
      if (found?.status === "finished") this.#finished.add(node);
      else if (found?.status === "failed") throw new UpstreamFailed(node, "failed");
      else if (found?.status === "cancelling" || isCancelled(found)) throw new UpstreamFailed(node, "cancelled");
    }
  }
}

/** The next scan of the source begins with its first part. */
function fromTheFirst(): Pick<Line, "from" | "seen" | "whole"> {
  return { from: null, seen: new Set(), whole: false };
}

/** Moves the position to the end of a page and returns the parts that are new. */
function unseen(line: Line, page: readonly MongoDocument[]): MongoDocument[] {
  return page.filter(({ created_at: at, batch_uid: uid }) => {
    if (typeof uid !== "string" || line.seen.has(uid)) return false;
    if (at instanceof Date) {
      if (line.from === null || at > line.from) {
        line.from = at;
        line.seen = new Set();
      }
      line.seen.add(uid);
    }
    return true;
  });
}

function partOf(fromNode: string, uid: unknown, meta: unknown): UpstreamPart {
  return { fromNode, uid: uid as string, meta: plainObject(meta) };
}

/**
 * Releases claims of earlier attempts on parts that they did not process. A claim without an epoch is from another implementation. Returns
 * the number.
 */
export async function releaseClaims(db: MongoDb, whose: MongoDocument, epoch: number): Promise<number> {
  const unprocessed = { ...whose, state: { $ne: "processed" }, epoch: { $not: { $gte: epoch } } };
  return (await mongoCall("release claims", () => db.collection("stream_progress").deleteMany(unprocessed))).deletedCount;
}

/** The unique key of a claim. */
export function claimKey({ taskId, nodeId }: Attempt, fromNode: string, uid: string): MongoDocument {
  return { task_id: taskId, consumer_node: nodeId, from_node: fromNode, batch_uid: uid };
}

/** The fields of a task's document with the state of its nodes. */
export const taskFlags = { _id: 0, coordinator: 1, "graph.nodes.node_id": 1, "graph.nodes.status": 1, "graph.nodes.coordinator": 1 };

export function nodeOf(task: MongoDocument, nodeId: string): MongoDocument | undefined {
  const nodes = isObject(task.graph) && Array.isArray(task.graph.nodes) ? task.graph.nodes : [];
  return nodes.filter(isObject).find(({ node_id }) => node_id === nodeId);
}

/** The coordinator sets this flag on tasks and on nodes. */
export function isCancelled(document: MongoDocument | undefined): boolean {
  return isObject(document?.coordinator) && document.coordinator.cancelled === true;
}
