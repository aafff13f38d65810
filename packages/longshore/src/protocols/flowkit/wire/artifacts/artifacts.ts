// The data plane of FlowKit: where its workers store their results and read those of others, also while the producer still runs. Commands
// and events travel over the bus.
//
// Three implementations have the same contract (test/contract/flowkit-artifacts.ts): our own store in the server's process
// (server/artifacts/part-artifacts.ts), the same store over HTTP (worker/artifacts/http.ts), and the MongoDB that all FlowKit workers can
// share (worker/artifacts/mongo.ts).

import { LongshoreError } from "../../../../core/errors.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import type { ActiveRun } from "../shapes.ts";

/**
 * One attempt of a node, as its worker names it. `epoch` is the fence: when there are two attempts, the one with the higher epoch counts.
 */
export interface Attempt {
  readonly taskId: string;
  readonly nodeId: string;
  readonly epoch: number;
  readonly workerId: string;
}

/** A partial artifact: the result of one batch. `uid` names it permanently within its node, so writing it twice stores one. */
export interface PartialArtifact {
  readonly uid: string;
  /** The metrics of the batch, which consumers of the node receive. */
  readonly meta: JsonObject;
  /** `meta` as JSON, if it is already serialised. */
  readonly json?: Stretch;
}

/** A range of UTF-8 bytes in a larger buffer. */
export interface Stretch {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}

export function stretchOf(text: string): Stretch {
  const bytes = Buffer.from(text);
  return { bytes, from: 0, to: bytes.length };
}

/** Names a part that a consumer has read. */
export interface PartRef {
  readonly fromNode: string;
  readonly uid: string;
}

/** A part of an upstream node with its data. */
export interface UpstreamPart extends PartRef {
  readonly meta: JsonObject;
}

/** How a reader waits for new parts of upstream nodes. */
export interface ReadOptions {
  /** The pause after an empty read, for stores that cannot wake their readers. It doubles up to `backoffMaxMs`. */
  readonly pollMs: number;
  readonly backoffMaxMs: number;
  /** When false, the stream does not end with its sources, only by `signal`. */
  readonly eofOnTaskDone: boolean;
  /** Ends the stream: it throws the signal's reason. */
  readonly signal: AbortSignal;
}

/** Calls reject with LONGSHORE_UNREACHABLE or LONGSHORE_STORE_UNAVAILABLE while the store cannot be used. All calls may be repeated. */
export interface ArtifactStore {
  /** For logs; contains no secret. */
  readonly name: string;
  /** True when this store belongs to the coordinator. Then the coordinator notices stored parts without events. */
  readonly tells?: boolean;
  /**
   * Stores partial artifacts; they are durable when this resolves. An existing part keeps its place, and a later attempt replaces its
   * value. When one attempt stores two values, our own store keeps the first, and MongoDB the last. Returns false when a later attempt has
   * taken over: then nothing of this attempt is accepted any more. At most `partsMax` in one call.
   */
  putPartials(attempt: Attempt, parts: readonly PartialArtifact[]): Promise<boolean>;
  /** Marks the node as complete; `meta` are its final metrics. Returns false as above. */
  complete(attempt: Attempt, meta: JsonObject): Promise<boolean>;
  /** Whether the node has succeeded, in any attempt. */
  isComplete(taskId: string, nodeId: string): Promise<boolean>;
  /**
   * The parts of the nodes `sources` for this consumer, oldest first for each source, each once for this attempt. Parts that an earlier
   * attempt read but did not finish are read again; finished ones are not. Ends when every source is complete and all parts were read.
   * Throws UpstreamFailed when a source failed or was cancelled.
   */
  read(consumer: Attempt, sources: readonly string[], options: ReadOptions): AsyncIterable<UpstreamPart>;
  /** Marks parts as finished: no later attempt reads them. Returns false when a later attempt has taken over. */
  finish(consumer: Attempt, parts: readonly PartRef[]): Promise<boolean>;
  /** Whether the coordinator has cancelled the task or this node. */
  cancelled(taskId: string, nodeId: string): Promise<boolean>;
  /** The newest known epoch of a node; null when it is unknown. A command with a lower epoch is outdated. */
  epochOf(taskId: string, nodeId: string): Promise<number | null>;
  loadState(workerId: string): Promise<ActiveRun | null>;
  saveState(workerId: string, run: ActiveRun | null): Promise<void>;
  /** The task as a document of the collection `tasks`; null when there is none. */
  task(taskId: string): Promise<JsonObject | null>;
  /** Ends open reads. May be called twice. */
  close(): Promise<void>;
}

/** Maximum number of parts in one call: a bulk write then takes less than a second on every store. */
export const partsMax = 1_000;

/** The error for a source that is not a node of the task. Waiting for its parts would never end. */
export function unknownSource(taskId: string, nodeId: string): LongshoreError {
  const detail = { field: sourcesField, expected: "nodes of the same task" };
  return new LongshoreError("LONGSHORE_NOT_FOUND", `There is no node ${JSON.stringify(nodeId)} in the task ${taskId}.`, { detail });
}

/** Also recognises this error when it came from the server over HTTP. */
export function isUnknownSource(error: unknown): error is LongshoreError {
  return error instanceof LongshoreError && error.code === "LONGSHORE_NOT_FOUND" && error.detail?.field === sourcesField;
}

const sourcesField = "from_nodes";

/** A source of parts failed or was cancelled, so its consumer can never get all parts. */
export class UpstreamFailed extends LongshoreError {
  override readonly name = "UpstreamFailed";
  readonly nodeId: string;

  constructor(nodeId: string, state: "failed" | "cancelled") {
    super("LONGSHORE_TASK_FAILED", `The upstream node ${JSON.stringify(nodeId)} ${state === "failed" ? "has failed" : "was cancelled"}.`);
    this.nodeId = nodeId;
  }
}
