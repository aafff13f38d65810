// The batches that the nodes of a task have put aside, or failed for: kept about a node while it is open, and with what it gave afterwards.

import { isOpen, type Task } from "../../../board/task.ts";
import { isObject, type JsonObject } from "../../../json.ts";
import type { DocumentStore } from "../../../run/documents.ts";
import type { Reader } from "../../../run/reader.ts";
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
  for (const task of await reader.records(taskId)) {
    const kept = isOpen(task.state) ? await documents.document(batchesKind, task.id) : undefined;
    const found = kept === undefined ? lettersIn(task) : (JSON.parse(kept.body) as BatchRecord).dead_letters;
    for (const letter of found) letters.push({ node_id: task.step, ...letter });
  }
  return letters;
}

function lettersIn({ output }: Task): readonly DeadLetter[] {
  if (output === null || !output.includes('"dead_letters"')) return [];
  const given = JSON.parse(output) as JsonObject;
  const letters = isObject(given) ? (given as JsonObject).dead_letters : null;
  return Array.isArray(letters) ? (letters as unknown as DeadLetter[]) : [];
}
