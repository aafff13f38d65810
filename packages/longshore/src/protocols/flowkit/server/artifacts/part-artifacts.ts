// Artifacts in our own store: partial artifacts are parts of the board's tasks, and a node is complete when its task is done. So the task's
// hold fences every write, and a commit with new parts wakes the readers.

import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import { writeExact } from "../../../../core/json/json-exact.ts";
import { rowBytes, Slices, wholeRow } from "../../../../core/slices/slices.ts";
import type { Verdict } from "../../../../core/verdict.ts";
import type { Board } from "../../../../engine/board/board.ts";
import type { EndState, Hold } from "../../../../engine/board/task.ts";
import { type Part, type PartPage, type PartStore, partBytesMax } from "../../../../engine/part/store.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import {
  type ArtifactStore,
  type Attempt,
  type PartialArtifact,
  type PartRef,
  type ReadOptions,
  type UpstreamPart,
  unknownSource,
} from "../../wire/artifacts/artifacts.ts";
import { checkParts } from "../../wire/artifacts/check.ts";
import { grouped } from "../../wire/artifacts/groups.ts";
import { partsOf, type SourcePage, type SourcePosition } from "../../wire/artifacts/pages.ts";
import type { ActiveRun } from "../../wire/shapes.ts";
import { WorkerStates } from "./worker-states.ts";

export interface OwnArtifactsDeps {
  readonly parts: PartStore;
  readonly board: Pick<Board, "extend" | "task">;
  readonly documents: DocumentStore;
  readonly clock: Clock;
  readonly places: NodePlaces;
  /** Returns the document of a task; null when there is none. */
  task(taskId: string): Promise<JsonObject | null>;
}

/** Finds the task on the board for a node that a worker names. */
export interface NodePlaces {
  find(name: { task_id: string; node_id: string }): Promise<{ readonly taskId: string } | undefined>;
}

/** Parts in one answer, of all its sources together. */
const pageParts = 500;
/** What looking at one source costs, in rows: it takes as long as reading some tens of entries of an index. */
const sourceRows = 32;

export class PartArtifacts implements ArtifactStore {
  readonly name = "our own store";
  readonly #deps: OwnArtifactsDeps;
  readonly #states: WorkerStates;
  readonly #closed = new AbortController();
  /** A reader may name a thousand sources, and each change of one of them wakes it. All readers share the sources that one turn looks at. */
  readonly #slices = new Slices();

  constructor(deps: OwnArtifactsDeps) {
    this.#deps = deps;
    this.#states = new WorkerStates(deps.documents, deps.clock);
  }

  async putPartials(attempt: Attempt, parts: readonly PartialArtifact[]): Promise<boolean> {
    checkParts(parts);
    return this.putTexts(
      attempt,
      parts.map(({ uid, meta }) => ({ uid, value: writeExact(meta) })),
    );
  }

  /** The same for parts that are already texts. */
  async putTexts(attempt: Attempt, parts: readonly { uid: string; value: string }[]): Promise<boolean> {
    const hold = await this.#holdOf(attempt);
    if (hold === undefined) return false;
    for (const group of grouped(parts, ({ value }) => Buffer.byteLength(value), partBytesMax)) {
      if (!isTaken(await this.#deps.parts.put(hold, group))) return false;
    }
    return true;
  }

  /** The worker's last event ends the task and contains the same metrics. Until then, the metrics are stored as progress. */
  async complete(attempt: Attempt, meta: JsonObject): Promise<boolean> {
    const hold = await this.#holdOf(attempt);
    if (hold === undefined) return false;
    const { verdict } = await this.#deps.board.extend(hold, { output: writeExact(meta), holder: attempt.workerId });
    return verdict === "ok";
  }

  async isComplete(taskId: string, nodeId: string): Promise<boolean> {
    const place = await this.#deps.places.find({ task_id: taskId, node_id: nodeId });
    return place !== undefined && (await this.#deps.board.task(place.taskId))?.state === "done";
  }

  read(consumer: Attempt, sources: readonly string[], options: ReadOptions): AsyncGenerator<UpstreamPart, void> {
    const ask = async (positions: readonly SourcePosition[], signal: AbortSignal) => {
      const pages = await this.pages(consumer, positions, signal);
      return pages.map((page) => ({ ...page, parts: page.parts.map(({ uid, value }) => ({ uid, meta: metaOf(value) })) }));
    };
    return partsOf(ask, sources, { ...options, signal: AbortSignal.any([options.signal, this.#closed.signal]) });
  }

  /** Returns whether the board has handed out this attempt. An offered attempt may be in progress before its acceptance arrives. */
  async isHeld({ taskId, nodeId, epoch, workerId }: Attempt): Promise<boolean> {
    const place = await this.#deps.places.find({ task_id: taskId, node_id: nodeId });
    const task = place === undefined ? undefined : await this.#deps.board.task(place.taskId);
    if (task === undefined || task.grant !== epoch) return false;
    if (task.state === "offered") return true;
    return (task.state === "held" || task.state === "cancelling") && (task.holder === null || task.holder === workerId);
  }

  /**
   * The parts of the sources after these positions, for a consumer that is a node of the same task. Waits until a source has parts or has
   * ended, or `signal` aborts. Stops at a limit of bytes and of parts; later sources then seem to have nothing.
   */
  async pages(consumer: Attempt, positions: readonly SourcePosition[], signal: AbortSignal): Promise<SourcePage<Part>[]> {
    const reader = (await this.#known(consumer.taskId, consumer.nodeId)).taskId;
    const sources: (SourcePosition & { readonly source: string })[] = [];
    for (const { node, after } of positions) {
      await this.#slices.turn(sourceRows);
      sources.push({ node, after, source: (await this.#known(consumer.taskId, node)).taskId });
    }
    for (;;) {
      // The watch starts before the read, so that a change in between wakes the reader.
      const change = this.#watch(
        sources.map(({ source }) => source),
        signal,
      );
      try {
        const pages: SourcePage<Part>[] = [];
        let bytes = 0;
        let parts = 0;
        for (const { node, after, source } of sources) {
          if (bytes >= partBytesMax || parts >= pageParts) break;
          await this.#slices.turn(sourceRows);
          const page = await this.#deps.parts.unread(reader, source, after, pageParts - parts);
          const read = page.parts.reduce((sum, { value }) => sum + value.length, 0);
          this.#slices.spent(read + page.parts.length * wholeRow * rowBytes);
          bytes += read;
          parts += page.parts.length;
          const ended = endOf(page);
          if (page.parts.length > 0 || ended !== null)
            pages.push({ node, after: page.parts.at(-1)?.sequence ?? after, parts: page.parts, ended });
        }
        if (pages.length > 0 || signal.aborted) return pages;
        await change.happened;
      } finally {
        change.stop();
      }
    }
  }

  async finish(consumer: Attempt, parts: readonly PartRef[]): Promise<boolean> {
    checkParts(parts);
    const reader = await this.#holdOf(consumer);
    if (reader === undefined) return false;
    const verdicts = await Promise.all(
      [...uidsByNode(parts)].map(async ([node, uids]) => {
        const { taskId: source } = await this.#known(consumer.taskId, node);
        return this.#deps.parts.finish(reader, source, uids);
      }),
    );
    return verdicts.every(isTaken);
  }

  async cancelled(taskId: string, nodeId: string): Promise<boolean> {
    const place = await this.#deps.places.find({ task_id: taskId, node_id: nodeId });
    const task = place === undefined ? undefined : await this.#deps.board.task(place.taskId);
    return task?.state === "cancelling" || task?.state === "cancelled";
  }

  async epochOf(taskId: string, nodeId: string): Promise<number | null> {
    const place = await this.#deps.places.find({ task_id: taskId, node_id: nodeId });
    const task = place === undefined ? undefined : await this.#deps.board.task(place.taskId);
    return task?.grant ?? null;
  }

  loadState(workerId: string): Promise<ActiveRun | null> {
    return this.#states.load(workerId);
  }

  saveState(workerId: string, run: ActiveRun | null): Promise<void> {
    return this.#states.save(workerId, run);
  }

  task(taskId: string): Promise<JsonObject | null> {
    return this.#deps.task(taskId);
  }

  async close(): Promise<void> {
    this.#closed.abort(new LongshoreError("LONGSHORE_CLOSED", "The server was closed while parts were read."));
  }

  async #holdOf({ taskId, nodeId, epoch, workerId }: Attempt): Promise<Hold | undefined> {
    const place = await this.#deps.places.find({ task_id: taskId, node_id: nodeId });
    return place === undefined ? undefined : { taskId: place.taskId, grant: epoch, holder: workerId };
  }

  async #known(taskId: string, nodeId: string): Promise<{ taskId: string }> {
    const place = await this.#deps.places.find({ task_id: taskId, node_id: nodeId });
    if (place !== undefined) return place;
    throw unknownSource(taskId, nodeId);
  }

  #watch(sources: readonly string[], signal: AbortSignal): { happened: Promise<void>; stop(): void } {
    let wake = () => {};
    const happened = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const ends = sources.map((source) => this.#deps.parts.watch(source, () => wake()));
    const gone = () => wake();
    signal.addEventListener("abort", gone, { once: true });
    if (signal.aborted) wake();
    return {
      happened,
      stop() {
        for (const end of ends) end();
        signal.removeEventListener("abort", gone);
      },
    };
  }
}

function uidsByNode(parts: readonly PartRef[]): Map<string, string[]> {
  const nodes = new Map<string, string[]>();
  for (const { fromNode, uid } of parts) {
    const uids = nodes.get(fromNode);
    if (uids === undefined) nodes.set(fromNode, [uid]);
    else uids.push(uid);
  }
  return nodes;
}

/** A repeated put counts as accepted. */
function isTaken(verdict: Verdict): boolean {
  return verdict === "ok" || verdict === "again";
}

/** A skipped step will produce no more parts; a forgotten step begins again. */
const ends: { readonly [state in EndState]: SourcePage["ended"] } = {
  done: "complete",
  skipped: "complete",
  failed: "failed",
  cancelled: "cancelled",
  forgotten: null,
};

function endOf({ parts, ended }: PartPage): SourcePage["ended"] {
  return parts.length > 0 || ended === null ? null : ends[ended];
}

/** A part of any protocol as FlowKit consumers need it: they know only objects. */
export function metaOf(value: string, parse: (text: string) => unknown = JSON.parse): JsonObject {
  const json = parse(value) as Json;
  return isObject(json) ? (json as JsonObject) : { result: json };
}
