// The batches that the nodes of a task have put aside, or failed for: kept about a node while it is open, and with what it gave afterwards.

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

/** In the order of the graph's nodes; costs as much as the task has nodes. */
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

/** Those of one task, in the words of the core. */
export async function shownDeadLetters(documents: Pick<DocumentStore, "document">, task: TaskRow): Promise<CoreDeadLetter[]> {
  const letters = await lettersOf(documents, task);
  return letters.map(({ batch_uid: uid, reason_code: reason, error, tries }) => ({ uid, reason, error, tries }));
}

/** Every batch of a task that failed last, as far as is known: of one that is open also those that are to be tried again. */
export async function failedBatches(documents: Pick<DocumentStore, "document">, task: TaskRow): Promise<readonly DeadLetter[]> {
  const record = isOpen(task.state) ? await recordOf(documents, task) : undefined;
  if (record === undefined) return lettersIn(task);
  const failed = new Map([...Object.values(record.failures), ...record.dead_letters].map((letter) => [letter.batch_uid, letter]));
  return [...failed.values()];
}

async function lettersOf(documents: Pick<DocumentStore, "document">, task: TaskRow): Promise<readonly DeadLetter[]> {
  const record = isOpen(task.state) ? await recordOf(documents, task) : undefined;
  if (record === undefined) return lettersIn(task);
  // What is only what an attempt failed for comes again with the next one: it is a dead letter when there is none.
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

/** A handler may give something of its own under this name. */
function isLetter(value: unknown): value is DeadLetter {
  if (!isObject(value)) return false;
  const { batch_uid, reason_code, attempt_epoch, tries } = value as JsonObject;
  return typeof batch_uid === "string" && typeof reason_code === "string" && Number.isInteger(attempt_epoch) && Number.isInteger(tries);
}
