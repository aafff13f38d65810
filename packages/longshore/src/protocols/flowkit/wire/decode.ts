// Decodes a record to a message, or returns why that is not possible. Nothing here throws: an unreadable record is reported and skipped,
// and the consumer continues. Unknown fields are ignored; absent ones have the defaults of the reference.

import { deeperThan, isObject, type JsonObject, jsonDepthMax } from "../../../core/json/json.ts";
import { JsonScan } from "../../../core/json/json-scan.ts";
import { shown } from "../../../core/text.ts";
import type {
  ActiveRun,
  Announcement,
  CancelSignal,
  Command,
  Discover,
  Envelope,
  MessageType,
  SenderRole,
  Snapshot,
  StatusEvent,
  StatusKind,
} from "./shapes.ts";

export type Read<Value> =
  | { readonly ok: true; readonly value: Value }
  /** `code` names the kind of failure, so that each kind is reported once. */
  | { readonly ok: false; readonly code: "envelope.invalid" | "kind.invalid" | "payload.invalid"; readonly why: string };

const versions: ReadonlySet<unknown> = new Set([1, 2]);
const messageTypes: ReadonlySet<unknown> = new Set<MessageType>(["cmd", "event", "heartbeat", "query", "reply"]);
const senders: ReadonlySet<unknown> = new Set<SenderRole>(["coordinator", "worker"]);
const texts = ["dedup_id", "task_id", "node_id", "step_type"] as const;

/**
 * Maximum number of values in one record: parsing this many takes about 50 ms. A record of one megabyte, the limit of our own bus, has
 * fewer values, except for objects with a hundred thousand names. Kafka may carry larger records.
 */
export const recordValuesMax = 524_288;
/** A record with fewer bytes cannot have more values, so most records are not counted. */
const countedBytesMin = recordValuesMax / 2;

// Refuses invalid UTF-8 instead of replacing it. Keeps no state between two calls.
const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Handlers get plain numbers; the coordinator keeps all digits with `parse`. */
export function decodeEnvelope(bytes: Uint8Array, parse: (text: string) => unknown = JSON.parse): Read<Envelope> {
  // Both checks run before anything is built: any program that may write to the topic can send a record.
  if (hasManyValues(bytes)) return invalid(`it holds more than ${recordValuesMax} values`);
  let value: unknown;
  try {
    const text = utf8.decode(bytes);
    if (deeperThan(text)) return invalid(`it is nested deeper than ${jsonDepthMax} levels`);
    value = parse(text);
  } catch (error) {
    return invalid(`it is not JSON in UTF-8 (${(error as Error).message})`);
  }
  if (!isObject(value)) return invalid(`it is ${described(value)}, expected an object`);
  const { v = 1, msg_type, role, corr_id, attempt_epoch, ts_ms, payload = {}, target_worker_id = null } = value;
  if (!versions.has(v)) return invalid(`v is ${described(v)}, expected 1 or 2`);
  if (!messageTypes.has(msg_type)) return invalid(`msg_type is ${described(msg_type)}, expected cmd, event, heartbeat, query or reply`);
  if (!senders.has(role)) return invalid(`role is ${described(role)}, expected coordinator or worker`);
  for (const field of texts) {
    if (typeof value[field] !== "string") return invalid(`${field} is ${described(value[field])}, expected a string`);
  }
  if (!isCount(attempt_epoch)) return invalid(`attempt_epoch is ${described(attempt_epoch)}, expected a whole number from 0`);
  if (!isCount(ts_ms)) return invalid(`ts_ms is ${described(ts_ms)}, expected milliseconds since 1970`);
  if (!isObject(payload)) return invalid(`payload is ${described(payload)}, expected an object`);
  if (target_worker_id !== null && typeof target_worker_id !== "string") {
    return invalid(`target_worker_id is ${described(target_worker_id)}, expected a string or null`);
  }
  const { dedup_id, task_id, node_id, step_type } = value as Record<(typeof texts)[number], string>;
  return {
    ok: true,
    // The fields are written out, because spreading an object takes longer than parsing its text.
    value: {
      v: v as number,
      msg_type: msg_type as MessageType,
      role: role as SenderRole,
      corr_id: textOr(corr_id, ""),
      dedup_id,
      task_id,
      node_id,
      step_type,
      attempt_epoch,
      ts_ms,
      payload: payload as JsonObject,
      target_worker_id,
    },
  };
}

/** A command to workers. */
export function readCommand({ msg_type, role, payload }: Envelope): Read<Command> {
  if (msg_type !== "cmd" || role !== "coordinator") return notOf("a coordinator's command", msg_type, role);
  const { cmd } = payload;
  if (cmd === "TASK_PAUSE" || cmd === "TASK_RESUME") return { ok: true, value: { cmd } };
  const cancel_token = textOr(payload.cancel_token, "");
  if (cmd === "TASK_CANCEL") return { ok: true, value: { cmd, reason: textOr(payload.reason, ""), cancel_token } };
  if (cmd !== "TASK_START") return unknownKind("cmd", cmd);
  const { input_ref = null, input_inline = null, batching = null } = payload;
  if (!isObjectOrNull(input_ref)) return badField("input_ref", input_ref, "an object or null");
  if (!isObjectOrNull(input_inline)) return badField("input_inline", input_inline, "an object or null");
  if (!isObjectOrNull(batching)) return badField("batching", batching, "an object or null");
  const { dead_letters = [] } = payload;
  if (!Array.isArray(dead_letters) || !dead_letters.every((uid) => typeof uid === "string")) {
    return badField("dead_letters", dead_letters, "a list of texts");
  }
  const skipped = dead_letters.length === 0 ? {} : { dead_letters };
  return { ok: true, value: { cmd, input_ref, input_inline, batching, cancel_token, ...skipped } };
}

/** A worker's report about an attempt. */
export function readStatus({ msg_type, role, payload }: Envelope): Read<StatusEvent> {
  // The reference defines the message type `heartbeat` but sends heartbeats as events.
  if ((msg_type !== "event" && msg_type !== "heartbeat") || role !== "worker") return notOf("a worker's event", msg_type, role);
  const { kind, worker_id } = payload;
  const reader = typeof kind === "string" && Object.hasOwn(statusReaders, kind) ? statusReaders[kind as StatusKind] : undefined;
  if (reader === undefined) return unknownKind("kind", kind);
  if (typeof worker_id !== "string" || worker_id === "") return badField("worker_id", worker_id, "a text");
  return reader(kind as never, worker_id, payload);
}

type StatusReader = (kind: never, worker_id: string, payload: JsonObject) => Read<StatusEvent>;

const statusReaders: Readonly<Record<StatusKind, StatusReader>> = {
  TASK_ACCEPTED: readLease,
  TASK_HEARTBEAT: readLease,
  TASK_RESUMED: readLease,
  BATCH_OK: (kind, worker_id, { batch_uid, metrics = {}, artifacts_ref = null }) => {
    if (typeof batch_uid !== "string" || batch_uid === "") return badField("batch_uid", batch_uid, "a text");
    if (!isObject(metrics)) return badField("metrics", metrics, "an object");
    if (!isObjectOrNull(artifacts_ref)) return badField("artifacts_ref", artifacts_ref, "an object or null");
    return { ok: true, value: { kind, worker_id, batch_uid, metrics, artifacts_ref } };
  },
  BATCH_FAILED: (kind, worker_id, { batch_uid, reason_code, permanent, error, artifacts_ref = null }) => {
    if (typeof batch_uid !== "string" || batch_uid === "") return badField("batch_uid", batch_uid, "a text");
    if (typeof reason_code !== "string") return badField("reason_code", reason_code, "a text");
    if (!isObjectOrNull(artifacts_ref)) return badField("artifacts_ref", artifacts_ref, "an object or null");
    const failure = { reason_code, permanent: permanent === true, error: textOr(error, null) };
    return { ok: true, value: { kind, worker_id, batch_uid, ...failure, artifacts_ref } };
  },
  TASK_DONE: (kind, worker_id, { metrics = {}, artifacts_ref = null, final_uid, output }) => {
    if (!isObject(metrics)) return badField("metrics", metrics, "an object");
    if (!isObjectOrNull(artifacts_ref)) return badField("artifacts_ref", artifacts_ref, "an object or null");
    const returned = output === undefined ? {} : { output };
    return { ok: true, value: { kind, worker_id, metrics, artifacts_ref, final_uid: textOr(final_uid, null), ...returned } };
  },
  TASK_FAILED: (kind, worker_id, { reason_code, permanent, error }) => {
    if (typeof reason_code !== "string") return badField("reason_code", reason_code, "a text");
    return { ok: true, value: { kind, worker_id, reason_code, permanent: permanent === true, error: textOr(error, null) } };
  },
  CANCELLED: (kind, worker_id, { reason }) => ({ ok: true, value: { kind, worker_id, reason: textOr(reason, "") } }),
};

function readLease(
  kind: "TASK_ACCEPTED" | "TASK_HEARTBEAT" | "TASK_RESUMED",
  worker_id: string,
  { lease_id, lease_deadline_ts_ms }: JsonObject,
): Read<StatusEvent> {
  if (typeof lease_id !== "string") return badField("lease_id", lease_id, "a text");
  if (!isCount(lease_deadline_ts_ms)) return badField("lease_deadline_ts_ms", lease_deadline_ts_ms, "milliseconds since 1970");
  return { ok: true, value: { kind, worker_id, lease_id, lease_deadline_ts_ms } };
}

/** A worker starts, is still alive, or leaves. */
export function readAnnouncement({ msg_type, role, payload }: Envelope): Read<Announcement> {
  if (msg_type !== "event" || role !== "worker") return notOf("a worker's announcement", msg_type, role);
  const { kind, worker_id } = payload;
  if (kind !== "WORKER_ONLINE" && kind !== "WORKER_OFFLINE") return unknownKind("kind", kind);
  if (typeof worker_id !== "string" || worker_id === "") return badField("worker_id", worker_id, "a text");
  if (kind === "WORKER_OFFLINE") return { ok: true, value: { kind, worker_id, reason: textOr(payload.reason, null) } };
  const { type, capabilities, roles, version, capacity, resume } = payload;
  // The draft of version 2 has a list of roles instead of `type`.
  const listed = isObject(capabilities) ? (capabilities.roles ?? roles) : roles;
  const known = Array.isArray(listed) ? listed.filter((role) => typeof role === "string") : undefined;
  const tasks = isObject(capacity) && isCount(capacity.tasks) ? capacity.tasks : 1;
  return {
    ok: true,
    value: {
      kind,
      worker_id,
      type: textOr(type, known?.join(",") ?? ""),
      capabilities: known === undefined ? null : { roles: known },
      version: textOr(version, ""),
      capacity: { tasks },
      resume: readActiveRun(resume),
    },
  };
}

/** Null for an unreadable state, which counts as no state. */
export function readActiveRun(value: unknown): ActiveRun | null {
  if (!isObject(value)) return null;
  const { task_id, node_id, step_type, attempt_epoch, lease_id, cancel_token, started_at_ms, state, checkpoint } = value;
  if (typeof task_id !== "string" || typeof node_id !== "string" || typeof step_type !== "string" || !isCount(attempt_epoch)) return null;
  return {
    task_id,
    node_id,
    step_type,
    attempt_epoch,
    lease_id: textOr(lease_id, ""),
    cancel_token: textOr(cancel_token, ""),
    started_at_ms: isCount(started_at_ms) ? started_at_ms : 0,
    state: state === "finishing" || state === "cancelling" ? state : "running",
    checkpoint: isObject(checkpoint) ? (checkpoint as JsonObject) : {},
  };
}

/** A coordinator's signal to one worker. */
export function readSignal({ msg_type, role, payload }: Envelope): Read<CancelSignal> {
  if (msg_type !== "event" || role !== "coordinator") return notOf("a coordinator's signal", msg_type, role);
  const { sig, reason, cancel_token, deadline_ts_ms } = payload;
  if (typeof sig !== "string" || sig.toUpperCase() !== "CANCEL") return unknownKind("sig", sig);
  const deadline = isCount(deadline_ts_ms) ? deadline_ts_ms : null;
  return {
    ok: true,
    value: { sig: "CANCEL", reason: textOr(reason, ""), cancel_token: textOr(cancel_token, null), deadline_ts_ms: deadline },
  };
}

export function readQuery({ msg_type, role, payload, attempt_epoch }: Envelope): Read<Discover> {
  if (msg_type !== "query" || role !== "coordinator") return notOf("a coordinator's query", msg_type, role);
  const { query, want_epoch } = payload;
  if (query !== "TASK_DISCOVER") return unknownKind("query", query);
  return { ok: true, value: { query, want_epoch: isCount(want_epoch) ? want_epoch : attempt_epoch } };
}

export function readReply({ msg_type, role, payload }: Envelope): Read<Snapshot> {
  if (msg_type !== "reply" || role !== "worker") return notOf("a worker's reply", msg_type, role);
  const { reply, worker_id, run_state, attempt_epoch, lease, progress, artifacts } = payload;
  if (reply !== "TASK_SNAPSHOT") return unknownKind("reply", reply);
  const state = run_state === "running" || run_state === "finishing" || run_state === "cancelling" ? run_state : "idle";
  return {
    ok: true,
    value: {
      reply,
      worker_id: textOr(worker_id, null),
      run_state: state,
      attempt_epoch: isCount(attempt_epoch) ? attempt_epoch : 0,
      lease: readSnapshotLease(lease),
      progress: isObject(progress) ? progress : null,
      artifacts: isObject(artifacts) ? artifacts : null,
    },
  };
}

function readSnapshotLease(value: unknown): Snapshot["lease"] {
  if (!isObject(value)) return null;
  const { worker_id, lease_id, deadline_ts_ms } = value;
  if (typeof worker_id !== "string" || typeof lease_id !== "string") return null;
  return { worker_id, lease_id, deadline_ts_ms: isCount(deadline_ts_ms) ? deadline_ts_ms : 0 };
}

/** Passes on the first failure of each code, because a faulty sender repeats its mistake. There are few codes. */
export function onceEach(tell: (code: string, message: string) => void): (code: string, message: string) => void {
  const reported = new Set<string>();
  return (code, message) => {
    if (reported.has(code)) return;
    reported.add(code);
    tell(code, message);
  };
}

function hasManyValues(bytes: Uint8Array): boolean {
  if (bytes.byteLength < countedBytesMin) return false;
  const scan = new JsonScan();
  scan.push(bytes);
  return scan.values > recordValuesMax;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function isObjectOrNull(value: unknown): value is JsonObject | null {
  return value === null || isObject(value);
}

function textOr<Default>(value: unknown, otherwise: Default): string | Default {
  return typeof value === "string" ? value : otherwise;
}

function invalid(why: string): Read<never> {
  return { ok: false, code: "envelope.invalid", why };
}

function notOf(expected: string, type: string, role: string): Read<never> {
  return { ok: false, code: "envelope.invalid", why: `it is ${type} of a ${role}, expected ${expected}` };
}

function unknownKind(field: string, value: unknown): Read<never> {
  return { ok: false, code: "kind.invalid", why: `payload.${field} is ${described(value)}, which is not known` };
}

function badField(field: string, value: unknown, expected: string): Read<never> {
  return { ok: false, code: "payload.invalid", why: `payload.${field} is ${described(value)}, expected ${expected}` };
}

function described(value: unknown): string {
  return value === undefined ? "absent" : shown(value);
}
