// The types of FlowKit's wire that workers and the coordinator share: the envelope, its payloads, topics, keys and groups. No I/O and no
// default behaviour. README.md of this protocol is the contract, with literal examples. Field names are FlowKit's own.

import type { Json, JsonObject } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";

/** The version that we write. We also read the draft of version 2, because it only adds fields. */
export const protocolVersion = 1;
/** The base path of FlowKit on a Longshore server. Not part of the reference. */
export const httpBase = "/flowkit/v1";
/** Means "no task, node or type" in announcements, and is the key of a reply without a task. */
export const nobody = "*";
/** The uid of the final result among the results of a node. */
export const finalUid = "__final__";

export type MessageType = "cmd" | "event" | "heartbeat" | "query" | "reply";
export type SenderRole = "coordinator" | "worker";

/** The value of every record. All fields are always written, in this order. */
export interface Envelope {
  readonly v: number;
  readonly msg_type: MessageType;
  readonly role: SenderRole;
  /** A reply has the correlation id of its query. */
  readonly corr_id: string;
  /** Each repetition of a message has the same id; see hash.ts. */
  readonly dedup_id: string;
  readonly task_id: string;
  readonly node_id: string;
  /** The node's type, which is the worker's role. */
  readonly step_type: string;
  /** The fence of an attempt: reports of earlier attempts do not count. */
  readonly attempt_epoch: number;
  readonly ts_ms: number;
  readonly payload: JsonObject;
  /** Set only on signals. */
  readonly target_worker_id: string | null;
}

/** Compact JSON with the fields in this order. */
export function encodeEnvelope(envelope: Omit<Envelope, "v">): string {
  const { msg_type, role, corr_id, dedup_id, task_id, node_id, step_type, attempt_epoch, ts_ms, payload, target_worker_id } = envelope;
  const v = protocolVersion;
  return writeExact({
    v,
    msg_type,
    role,
    corr_id,
    dedup_id,
    task_id,
    node_id,
    step_type,
    attempt_epoch,
    ts_ms,
    payload,
    target_worker_id,
  });
}

/** A coordinator's command to the workers of a type. */
export type Command =
  | {
      readonly cmd: "TASK_START";
      readonly input_ref: JsonObject | null;
      readonly input_inline: JsonObject | null;
      /** Passed through unchanged. */
      readonly batching: JsonObject | null;
      readonly cancel_token: string;
      /** Our addition, sent only when there are any: batches to skip, because they have used up their tries. */
      readonly dead_letters?: readonly string[];
    }
  | { readonly cmd: "TASK_CANCEL"; readonly reason: string; readonly cancel_token: string }
  /** Names that are known but have no effect. */
  | { readonly cmd: "TASK_PAUSE" | "TASK_RESUME" };

export type TaskStart = Extract<Command, { cmd: "TASK_START" }>;

export interface Lease {
  readonly lease_id: string;
  readonly lease_deadline_ts_ms: number;
}

/** A worker's report about an attempt; each has `worker_id`. */
export type StatusEvent = { readonly worker_id: string } & (
  | ({ readonly kind: "TASK_ACCEPTED" | "TASK_HEARTBEAT" | "TASK_RESUMED" } & Lease)
  | {
      readonly kind: "BATCH_OK";
      readonly batch_uid: string;
      readonly metrics: JsonObject;
      readonly artifacts_ref: JsonObject | null;
    }
  | {
      readonly kind: "BATCH_FAILED";
      readonly batch_uid: string;
      readonly reason_code: string;
      readonly permanent: boolean;
      readonly error: string | null;
      readonly artifacts_ref: JsonObject | null;
    }
  | {
      readonly kind: "TASK_DONE";
      readonly metrics: JsonObject;
      readonly artifacts_ref: JsonObject | null;
      readonly final_uid: string | null;
      /** Our addition: the output of an ordinary task. Its metrics were sent with its batch. */
      readonly output?: Json;
    }
  | { readonly kind: "TASK_FAILED"; readonly reason_code: string; readonly permanent: boolean; readonly error: string | null }
  | { readonly kind: "CANCELLED"; readonly reason: string }
);

export type StatusKind = StatusEvent["kind"];

/** A run that a worker has not ended. It is stored for a restart and sent in the first announcement. */
export interface ActiveRun {
  readonly task_id: string;
  readonly node_id: string;
  readonly step_type: string;
  readonly attempt_epoch: number;
  readonly lease_id: string;
  readonly cancel_token: string;
  readonly started_at_ms: number;
  readonly state: "running" | "finishing" | "cancelling";
  readonly checkpoint: JsonObject;
}

/** A worker starts, is still alive, or leaves. */
export type Announcement =
  | {
      readonly kind: "WORKER_ONLINE";
      readonly worker_id: string;
      /** The worker's roles, separated by commas. */
      readonly type: string;
      readonly capabilities: { readonly roles: readonly string[] } | null;
      readonly version: string;
      readonly capacity: { readonly tasks: number };
      readonly resume: ActiveRun | null;
    }
  | { readonly kind: "WORKER_OFFLINE"; readonly worker_id: string; readonly reason: string | null };

/** For one worker; the envelope names the run. */
export interface CancelSignal {
  readonly sig: "CANCEL";
  readonly reason: string;
  readonly cancel_token: string | null;
  /** Until when the coordinator waits. */
  readonly deadline_ts_ms: number | null;
}

export interface Discover {
  readonly query: "TASK_DISCOVER";
  readonly want_epoch: number;
}

/** A worker's answer: it runs this node, or it does not. */
export interface Snapshot {
  readonly reply: "TASK_SNAPSHOT";
  readonly worker_id: string | null;
  readonly run_state: "running" | "finishing" | "cancelling" | "idle";
  /** The epoch of the run. The epoch in the envelope is that of the query. */
  readonly attempt_epoch: number;
  readonly lease: { readonly worker_id: string; readonly lease_id: string; readonly deadline_ts_ms: number } | null;
  readonly progress: JsonObject | null;
  readonly artifacts: JsonObject | null;
}

/** The payload for an envelope. These types are JSON objects, but interfaces have no index signature. */
export function payloadOf(value: Command | StatusEvent | Announcement | CancelSignal | Discover | Snapshot): JsonObject {
  return value as unknown as { [field: string]: Json };
}

/** The topic names, which an installation may change; `{type}` is replaced by the type. */
export interface TopicNames {
  readonly cmd: string;
  readonly status: string;
  readonly announce: string;
  readonly query: string;
  readonly reply: string;
  readonly signals: string;
}

export const topicNamesDefault: TopicNames = {
  cmd: "cmd.{type}.v1",
  status: "status.{type}.v1",
  announce: "workers.announce.v1",
  query: "query.tasks.v1",
  reply: "reply.tasks.v1",
  signals: "signals.v1",
};

export function commandTopic(names: TopicNames, type: string): string {
  return names.cmd.replaceAll("{type}", () => type);
}

export function statusTopic(names: TopicNames, type: string): string {
  return names.status.replaceAll("{type}", () => type);
}

/** The key of commands and events: the records of one node stay in order. */
export function nodeKey(taskId: string, nodeId: string): string {
  return `${taskId}:${nodeId}`;
}

/** The workers of a role compete for its commands. */
export function commandGroup(role: string): string {
  return `workers.${role}.v1`;
}

/** One group per worker, because a query must reach every worker. The reference has one group for all. */
export function queryGroup(workerId: string): string {
  return `workers.query.${workerId}`;
}

export function signalsGroup(workerId: string): string {
  return `workers.signals.${workerId}`;
}
