// The dead letters of a task's nodes: from the record of an open node, and from the output of an ended one.

import { isObject, type JsonObject } from "../../../../core/json/json.ts";
import { parseExact } from "../../../../core/json/json-exact.ts";
import type { DeadLetter as CoreDeadLetter } from "../../../../engine/board/dead-letter.ts";
import { isOpen, type TaskRow } from "../../../../engine/board/task.ts";
import type { DocumentStore } from "../../../../engine/run/documents.ts";
import type { Reader } from "../../../../engine/run/reader.ts";
import { type BatchRecord, batchesKind, type DeadLetter } from "./batches.ts";

export interface NodeDeadLetter extends DeadLetter {
  readonly node_id: string;
}

/** Sorted by the order of the graph's nodes. The cost is proportional to the number of nodes. */
export async function deadLettersOf(
  { reader, documents }: { reader: Pick<Reader, "records">; documents: Pick<DocumentStore, "document"> },
  taskId: string,
): Promise<NodeDeadLetter[]> {
  const letters: NodeDeadLetter[] = [];
  for await (const task of reader.records(taskId)) {
    for (const letter of await lettersOf(documents, task)) letters.push({ node_id: task.step, ...letter });
  }
  return letters;
}

/** The dead letters of one task, in the form of the core. */
export async function shownDeadLetters(documents: Pick<DocumentStore, "document">, task: TaskRow): Promise<CoreDeadLetter[]> {
  const letters = await lettersOf(documents, task);
  return letters.map(({ batch_uid: uid, reason_code: reason, error, tries }) => ({ uid, reason, error, tries }));
}

/** All batches of a task whose last try failed, as far as known; for an open task also those that will be retried. */
export async function failedBatches(documents: Pick<DocumentStore, "document">, task: TaskRow): Promise<readonly DeadLetter[]> {
  const record = isOpen(task.state) ? await recordOf(documents, task) : undefined;
  if (record === undefined) return lettersIn(task);
  const failed = new Map([...Object.values(record.failures), ...record.dead_letters].map((letter) => [letter.batch_uid, letter]));
  return [...failed.values()];
}

async function lettersOf(documents: Pick<DocumentStore, "document">, task: TaskRow): Promise<readonly DeadLetter[]> {
  const record = isOpen(task.state) ? await recordOf(documents, task) : undefined;
  if (record === undefined) return lettersIn(task);
  // A batch that is only the reason of a failed attempt is processed again by the next attempt. It becomes a dead letter when there is no
  // next attempt.
  return record.dead_letters.filter(({ batch_uid }) => record.failures[batch_uid] === undefined);
}

async function recordOf(documents: Pick<DocumentStore, "document">, { id }: TaskRow): Promise<BatchRecord | undefined> {
  const kept = await documents.document(batchesKind, id);
  return kept === undefined ? undefined : (JSON.parse(kept.body) as BatchRecord);
}

function lettersIn({ output }: TaskRow): readonly DeadLetter[] {
  if (output === null || !output.includes('"dead_letters"')) return [];
  const given = parseExact(output) as JsonObject;
  const letters = isObject(given) ? (given as JsonObject).dead_letters : null;
  return Array.isArray(letters) ? (letters as unknown[]).filter(isLetter) : [];
}

/** A handler may use this field name for its own output. */
function isLetter(value: unknown): value is DeadLetter {
  if (!isObject(value)) return false;
  const { batch_uid, reason_code, attempt_epoch, tries } = value as JsonObject;
  return typeof batch_uid === "string" && typeof reason_code === "string" && Number.isInteger(attempt_epoch) && Number.isInteger(tries);
}
