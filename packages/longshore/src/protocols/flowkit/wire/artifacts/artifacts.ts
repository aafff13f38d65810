// Where FlowKit's workers keep what they produce and find what others produced: the data plane of the protocol. Commands and events
// travel over the bus; the results themselves are stored here, and a consumer reads them while their producer still works.
//
// Three implementations hold the same contract (test/contract/flowkit-artifacts.ts): our own store in the server's process (part-artifacts.ts), the
// same over HTTP (http.ts), and the MongoDB that workers of other makes share (mongo.ts).

import { LongshoreError } from "../../../../core/errors.ts";
import type { JsonObject } from "../../../../core/json/json.ts";
import type { ActiveRun } from "../shapes.ts";

/** One attempt of a node, as its worker names it. `epoch` is the fence: of two attempts the higher one counts. */
export interface Attempt {
  readonly taskId: string;
  readonly nodeId: string;
  readonly epoch: number;
  readonly workerId: string;
}

/** A partial artifact: what one batch has produced. `uid` names it within its node forever, so that writing it twice keeps one. */
export interface PartialArtifact {
  readonly uid: string;
  /** What the consumers of the node are given: the metrics of the batch. */
  readonly meta: JsonObject;
  /** `meta` as JSON, where it has been written already. */
  readonly json?: Stretch;
}

/** Bytes amid others, in UTF-8. */
export interface Stretch {
  readonly bytes: Buffer;
  readonly from: number;
  readonly to: number;
}

export function stretchOf(text: string): Stretch {
  const bytes = Buffer.from(text);
  return { bytes, from: 0, to: bytes.length };
}

/** Names a part that a consumer was given. */
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
  /** How long an empty look is followed by a pause, where the store cannot wake its readers; the pause doubles up to `backoffMaxMs`. */
  readonly pollMs: number;
  readonly backoffMaxMs: number;
  /** False: the stream does not end with its sources, only by `signal`. */
  readonly eofOnTaskDone: boolean;
  /** Ends the stream by throwing its reason. */
  readonly signal: AbortSignal;
}

/** Calls reject with LONGSHORE_UNREACHABLE or LONGSHORE_STORE_UNAVAILABLE while the store cannot be used, and may be repeated. */
export interface ArtifactStore {
  /** For logs; never a secret. */
  readonly name: string;
  /** True where the store of the parts is the coordinator as well: it has them by that, and no event is needed. */
  readonly tells?: boolean;
  /**
   * Keeps partial artifacts; they are durable when this resolves. One that is there already keeps its place; a later attempt replaces its
   * value. Of two values of one attempt our own store keeps the first, MongoDB the last. False when a later attempt has taken over, and
   * then nothing more of this attempt is accepted. At most `partsMax` in one call.
   */
  putPartials(attempt: Attempt, parts: readonly PartialArtifact[]): Promise<boolean>;
  /** The node has produced all that it will; `meta` are its final metrics. False as above. */
  complete(attempt: Attempt, meta: JsonObject): Promise<boolean>;
  /** Whether the node has succeeded, by any attempt. */
  isComplete(taskId: string, nodeId: string): Promise<boolean>;
  /**
   * The parts of the nodes `sources` for this consumer, oldest first for each source, each given once to this attempt. What an earlier attempt was given
   * and did not finish comes again, what it finished does not. Ends when every source is complete and all was given. Throws
   * UpstreamFailed when a source can give no more because it failed or was cancelled.
   */
  read(consumer: Attempt, sources: readonly string[], options: ReadOptions): AsyncIterable<UpstreamPart>;
  /** The consumer is done with these: no later attempt is given them. False when a later attempt has taken over. */
  finish(consumer: Attempt, parts: readonly PartRef[]): Promise<boolean>;
  /** Whether the task or this node of it is to be cancelled, by the coordinator's order. */
  cancelled(taskId: string, nodeId: string): Promise<boolean>;
  /** The newest epoch of a node, as far as it is known here; null when nothing is. A command with a lower one has been overtaken. */
  epochOf(taskId: string, nodeId: string): Promise<number | null>;
  loadState(workerId: string): Promise<ActiveRun | null>;
  saveState(workerId: string, run: ActiveRun | null): Promise<void>;
  /** The task as a document of the collection `tasks`; null when there is none. */
  task(taskId: string): Promise<JsonObject | null>;
  /** Ends what is being read. May be called twice. */
  close(): Promise<void>;
}

/** Parts in one call: a bulk write that stays below a second on every store, and a body that stays within its limit. */
export const partsMax = 1_000;

/** A source that is no node of the task: waiting for its parts would never end. */
export function unknownSource(taskId: string, nodeId: string): LongshoreError {
  const detail = { field: sourcesField, expected: "nodes of the same task" };
  return new LongshoreError("LONGSHORE_NOT_FOUND", `There is no node ${JSON.stringify(nodeId)} in the task ${taskId}.`, { detail });
}

/** Also of the server's answer, when it was read over HTTP. */
export function isUnknownSource(error: unknown): error is LongshoreError {
  return error instanceof LongshoreError && error.code === "LONGSHORE_NOT_FOUND" && error.detail?.field === sourcesField;
}

const sourcesField = "from_nodes";

/** A source of parts failed or was cancelled, so its consumer will never have all of them. */
export class UpstreamFailed extends LongshoreError {
  override readonly name = "UpstreamFailed";
  readonly nodeId: string;

  constructor(nodeId: string, state: "failed" | "cancelled") {
    super("LONGSHORE_TASK_FAILED", `The upstream node ${JSON.stringify(nodeId)} ${state === "failed" ? "has failed" : "was cancelled"}.`);
    this.nodeId = nodeId;
  }
}
