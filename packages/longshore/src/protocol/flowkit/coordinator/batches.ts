// Batches that failed, for nodes whose retry policy speaks of batches: how often each one did, and which were put aside. Kept as the
// task's output so far, so that it lives and ends with the task; in the end it is part of what the node gives.

import type { Task } from "../../../board/task.ts";
import type { BatchSettings } from "../../../dialect/flowkit/retry-policy.ts";
import { isObject, type JsonObject } from "../../../json.ts";
import type { StatusEvent } from "../wire.ts";

export type BatchFailure = Pick<Extract<StatusEvent, { kind: "BATCH_FAILED" }>, "batch_uid" | "reason_code" | "permanent" | "error">;

export interface DeadLetter {
  readonly batch_uid: string;
  readonly reason_code: string;
  readonly error: string | null;
  readonly attempt_epoch: number;
}

export interface BatchRecord {
  /** How often each failed that has not been put aside. */
  readonly failures: { readonly [uid: string]: number };
  readonly dead_letters: readonly DeadLetter[];
  /** The newest, until what becomes of its attempt is known. */
  readonly failing: (BatchFailure & { readonly attempt_epoch: number }) | null;
}

/** What follows from an attempt that ended with a failed batch. */
export type BatchVerdict = { readonly next: "again" | "passed-over" | "fail"; readonly record: BatchRecord };

/** Each travels with every further start of its node. A node with more of them does not work at all. */
const deadLettersMax = 1_000;
/** Of an error's text that is kept. */
const errorCharsMax = 2_000;

const empty: BatchRecord = { failures: {}, dead_letters: [], failing: null };

/** What a task's output so far says; of an output that is none, nothing. */
export function batchRecordIn(output: Task["output"] | undefined): BatchRecord {
  if (output === null || output === undefined || !output.includes('"dead_letters"')) return empty;
  const kept = JSON.parse(output) as Partial<BatchRecord>;
  return isObject(kept) ? { failures: kept.failures ?? {}, dead_letters: kept.dead_letters ?? [], failing: kept.failing ?? null } : empty;
}

export function withFailing(record: BatchRecord, { batch_uid, reason_code, permanent, error }: BatchFailure, epoch: number): BatchRecord {
  const text = error === null ? null : error.slice(0, errorCharsMax);
  return { ...record, failing: { batch_uid, reason_code, permanent, error: text, attempt_epoch: epoch } };
}

/** Null when no batch failed in this attempt: then the failure is the node's own. */
export function judge(record: BatchRecord, settings: BatchSettings, epoch: number): BatchVerdict | null {
  const { failing } = record;
  if (failing === null || failing.attempt_epoch !== epoch) return null;
  const { batch_uid, reason_code, error, attempt_epoch } = failing;
  const count = (record.failures[batch_uid] ?? 0) + 1;
  if (!failing.permanent && count <= settings.max) {
    return { next: "again", record: { ...record, failures: { ...record.failures, [batch_uid]: count }, failing: null } };
  }
  const { [batch_uid]: _counted, ...failures } = record.failures;
  const dead_letters = [...record.dead_letters, { batch_uid, reason_code, error, attempt_epoch }];
  const next = settings.dead_letter && dead_letters.length <= deadLettersMax ? "passed-over" : "fail";
  return { next, record: { failures, dead_letters, failing: null } };
}

/** What a node gives that went on without some of its batches. */
export function withDeadLetters(metrics: JsonObject, { dead_letters }: BatchRecord): JsonObject {
  return dead_letters.length === 0 ? metrics : { ...metrics, dead_letters: dead_letters as unknown as JsonObject[] };
}
