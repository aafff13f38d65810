// Failed batches: how often each one failed, and which are dead letters. They are a document of the task until its end. Then the dead
// letters become part of the node's output. The document also has the decision about an attempt, so that a repeated report counts once, and
// how often a node missed some of its input.

import type { Json, JsonObject } from "../../../../core/json/json.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { BatchSettings } from "../../dialect/retry-policy.ts";
import type { StatusEvent } from "../../wire/shapes.ts";

export type BatchFailure = Pick<Extract<StatusEvent, { kind: "BATCH_FAILED" }>, "batch_uid" | "reason_code" | "permanent" | "error">;

export interface DeadLetter {
  readonly batch_uid: string;
  readonly reason_code: string;
  readonly error: string | null;
  /** The epoch of the last try. */
  readonly attempt_epoch: number;
  readonly tries: number;
}

export interface BatchRecord {
  /** The last failure of each batch that is not a dead letter. */
  readonly failures: { readonly [uid: string]: DeadLetter };
  readonly dead_letters: readonly DeadLetter[];
  /** The newest failure, until its attempt has ended. */
  readonly failing: (Omit<DeadLetter, "tries"> & { readonly permanent: boolean }) | null;
  /** The decision about the newest attempt that ended with a failed batch. */
  readonly judged: { readonly attempt_epoch: number; readonly next: NextStep } | null;
  /** How often an attempt ended without results for all its input; absent means never. */
  readonly missed?: number;
}

type Judged = BatchRecord & { readonly judged: NonNullable<BatchRecord["judged"]> };

/** Try the batch again, continue without it, or fail the node. */
export type NextStep = "again" | "pass-over" | "fail";

/** Maximum number of dead letters of a node, because each later start of the node carries all of them. With more, the node fails. */
const deadLettersMax = 1_000;
/** Maximum length of a stored error. */
const errorCharsMax = 2_000;

export const batchesKind = "flowkit-batches";
const nothing: BatchRecord = { failures: {}, dead_letters: [], failing: null, judged: null };

export class BatchRecords {
  readonly #documents: DocumentStore;
  /** The tasks that have a record. Nearly all tasks have none, and for these no row is read. */
  readonly #kept = new Set<string>();

  constructor(documents: DocumentStore) {
    this.#documents = documents;
  }

  /** Reads the stored records. Returns their tasks. */
  async load(): Promise<readonly string[]> {
    for await (const { name } of this.#documents.eachDocument(batchesKind)) this.#kept.add(name);
    return [...this.#kept];
  }

  async of(taskId: string): Promise<BatchRecord> {
    const kept = this.#kept.has(taskId) ? await this.#documents.document(batchesKind, taskId) : undefined;
    return kept === undefined ? nothing : (JSON.parse(kept.body) as BatchRecord);
  }

  async keep(taskId: string, record: BatchRecord): Promise<void> {
    this.#kept.add(taskId);
    await this.#documents.keepDocument({ kind: batchesKind, name: taskId, version: 1, body: JSON.stringify(record) }, { own: true });
  }

  /** Whether there is a record to drop. */
  has(taskId: string): boolean {
    return this.#kept.has(taskId);
  }

  async drop(taskId: string): Promise<void> {
    if (this.#kept.delete(taskId)) await this.#documents.removeDocument(batchesKind, taskId);
  }
}

export function withFailing(record: BatchRecord, { batch_uid, reason_code, permanent, error }: BatchFailure, epoch: number): BatchRecord {
  const text = error === null ? null : error.slice(0, errorCharsMax);
  return { ...record, failing: { batch_uid, reason_code, permanent, error: text, attempt_epoch: epoch } };
}

/**
 * The record, with the decision about this attempt in `judged`. Null when no batch failed in the attempt: then the node itself has failed.
 */
export function judge(record: BatchRecord, settings: BatchSettings | null, epoch: number): Judged | null {
  const { failing, judged } = record;
  if (judged !== null && judged.attempt_epoch === epoch) return { ...record, judged };
  if (failing === null || failing.attempt_epoch !== epoch) return null;
  const { batch_uid, permanent, ...failure } = failing;
  const letter = { batch_uid, ...failure, tries: (record.failures[batch_uid]?.tries ?? 0) + 1 };
  if (settings !== null && !permanent && letter.tries <= settings.max) {
    return {
      ...record,
      failures: { ...record.failures, [batch_uid]: letter },
      failing: null,
      judged: { attempt_epoch: epoch, next: "again" },
    };
  }
  // A batch without its own budget does not become a dead letter: the node's next try processes it again. It is recorded as the reason of
  // this failure.
  if (settings === null) {
    const failures = { ...record.failures, [batch_uid]: letter };
    return { ...record, failures, dead_letters: [letter], failing: null, judged: { attempt_epoch: epoch, next: "fail" } };
  }
  const { [batch_uid]: _counted, ...failures } = record.failures;
  const dead_letters = [...record.dead_letters, letter];
  const next = settings.dead_letter && dead_letters.length <= deadLettersMax ? "pass-over" : "fail";
  return { ...record, failures, dead_letters, failing: null, judged: { attempt_epoch: epoch, next } };
}

/** The output of a node that continued without some of its batches. */
export function withDeadLetters(metrics: JsonObject, { dead_letters }: BatchRecord): JsonObject {
  return dead_letters.length === 0 ? metrics : { ...metrics, dead_letters: dead_letters as unknown as Json };
}
