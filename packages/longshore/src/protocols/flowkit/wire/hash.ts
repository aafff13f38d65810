// Idempotency ids: BLAKE2b with a 20-byte digest over canonical JSON, as in the reference. Two programs must get the same id for the same
// thing. So every byte of the text is defined: keys in code point order, no white space, numbers as Python writes them. A whole number has
// no decimal point: in JavaScript 2.0 is 2.

import type { Json } from "../../../core/json/json.ts";
import { blake2b } from "./blake2b.ts";

const digestBytes = 20;

/** 40 hex digits. */
export function stableHash(value: Json): string {
  return hashText(canonicalJson(value));
}

export function canonicalJson(value: Json): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (typeof value === "number") return numberText(value);
  if (typeof value !== "object" || value === null) return String(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(",")}]`;
  const members: string[] = [];
  for (const key of Object.keys(value).sort(byCodePoint)) {
    const member = value[key];
    if (member !== undefined) members.push(`${JSON.stringify(key)}:${canonicalJson(member)}`);
  }
  return `{${members.join(",")}}`;
}

/** The attempt in an id. */
export interface AttemptKey {
  readonly task_id: string;
  readonly node_id: string;
  readonly attempt_epoch: number;
}

/** The `dedup_id` of each kind of message. The hashed objects are those of the reference, including their unusual names. */
export const dedupIds = {
  start: ({ task_id, node_id, attempt_epoch: epoch }: AttemptKey) => stableHash({ cmd: "CommandKind.TASK_START", task_id, node_id, epoch }),
  discover: ({ task_id, node_id, attempt_epoch: epoch }: AttemptKey) =>
    stableHash({ query: "QueryKind.TASK_DISCOVER", task_id, node_id, epoch }),
  cancelSignal: ({ task_id, node_id: node, attempt_epoch: epoch }: AttemptKey, worker: string) =>
    stableHash({ sig: "CANCEL", task_id, node, epoch, worker }),
  announce: (announce: string, worker: string, ts_ms: number) => stableHash({ announce, worker, ts_ms }),
  accepted: (key: AttemptKey, lease: string) => stableHash({ acc: key.task_id, n: key.node_id, e: key.attempt_epoch, lease }),
  /** Two heartbeats in one interval have the same id. */
  heartbeat: (key: AttemptKey, nowMs: number, everyMs: number) =>
    stableHash({ hb: key.task_id, n: key.node_id, e: key.attempt_epoch, t: Math.floor(nowMs / Math.max(1, everyMs)) }),
  batchOk: (key: AttemptKey, uid: string) => batchId("bok", key, uid),
  batchFailed: (key: AttemptKey, uid: string) => batchId("bf", key, uid),
  done: (key: AttemptKey) => stableHash({ td: key.task_id, n: key.node_id, e: key.attempt_epoch }),
  failed: (key: AttemptKey, reason: string, permanent: boolean) =>
    stableHash({ tf: key.task_id, n: key.node_id, e: key.attempt_epoch, r: reason, p: permanent }),
  cancelled: (key: AttemptKey) => stableHash({ c: key.task_id, n: key.node_id, e: key.attempt_epoch }),
  /** The epoch is that of the query. */
  snapshot: (key: AttemptKey, worker: string) => stableHash({ snap: key.task_id, n: key.node_id, e: key.attempt_epoch, w: worker }),
  /** For a batch without a name. */
  payload: (payload: Json) => stableHash({ payload }),
  /** For a piece of an artifact. */
  chunk: (src: string, parent: string, idx: number) => stableHash({ src, parent, idx }),
  outbox: (topic: string, key: string, dedup_id: string) => stableHash({ topic, key, dedup_id }),
} as const;

/** The keys are written out: sorting four known keys for every batch would cost more than the hash. */
function batchId(what: "bok" | "bf", { task_id, node_id, attempt_epoch }: AttemptKey, uid: string): string {
  const ids = `"e":${attempt_epoch},"n":${JSON.stringify(node_id)},"uid":${JSON.stringify(uid)}`;
  return hashText(`{"${what}":${JSON.stringify(task_id)},${ids}}`);
}

function hashText(text: string): string {
  return blake2b(Buffer.from(text), digestBytes);
}

/** JavaScript compares strings by UTF-16 units, so some characters above U+FFFF would come before characters below it. */
function byCodePoint(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) {
    const left = a.charCodeAt(at);
    const right = b.charCodeAt(at);
    if (left !== right) return inCodePointOrder(left) - inCodePointOrder(right);
  }
  return a.length - b.length;
}

/** Sorts surrogates after all other units. */
function inCodePointOrder(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Python uses an exponent below 0.0001, with at least two digits. */
function numberText(value: number): string {
  if (value === 0 || Number.isInteger(value) || Math.abs(value) >= 1e-4) return JSON.stringify(value);
  const [digits, exponent] = value.toExponential().split("e-") as [string, string];
  return `${digits}e-${exponent.padStart(2, "0")}`;
}
