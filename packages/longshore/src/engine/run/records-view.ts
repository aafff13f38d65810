// The records of a large run as one operation sees them. Nothing is copied: with tens of thousands of records, a copy takes longer than the
// operation.

import type { TaskRow } from "../board/task.ts";

/** A record without its texts. */
export type RecordHead = Omit<TaskRow, "input" | "output">;

/** The same records without their texts. Completing thousands of records takes longer than most of what a decision looks for in them. */
export function recordHeads(records: ReadonlyMap<number, TaskRow>): ReadonlyMap<number, RecordHead> {
  return records instanceof RecordsView ? records.heads() : records;
}

/** `pending`: the records of the batch. `complete` is called for each other record that is read. */
export class RecordsView<Head extends RecordHead = TaskRow> implements ReadonlyMap<number, TaskRow> {
  readonly #heads: ReadonlyMap<number, Head>;
  readonly #pending: ReadonlyMap<number, TaskRow>;
  readonly #complete: (head: Head) => TaskRow;

  constructor(
    heads: ReadonlyMap<number, Head>,
    pending: ReadonlyMap<number, TaskRow>,
    complete: (head: Head) => TaskRow = (head) => head as unknown as TaskRow,
  ) {
    this.#heads = heads;
    this.#pending = pending;
    this.#complete = complete;
  }

  heads(): ReadonlyMap<number, RecordHead> {
    return new RecordsView(this.#heads, this.#pending);
  }

  get size(): number {
    let { size } = this.#heads;
    for (const node of this.#pending.keys()) if (!this.#heads.has(node)) size++;
    return size;
  }

  has(node: number): boolean {
    return this.#pending.has(node) || this.#heads.has(node);
  }

  get(node: number): TaskRow | undefined {
    const pending = this.#pending.get(node);
    if (pending !== undefined) return pending;
    const head = this.#heads.get(node);
    return head === undefined ? undefined : this.#complete(head);
  }

  *keys(): MapIterator<number> {
    yield* this.#heads.keys();
    for (const node of this.#pending.keys()) if (!this.#heads.has(node)) yield node;
  }

  *values(): MapIterator<TaskRow> {
    for (const node of this.keys()) yield this.get(node) as TaskRow;
  }

  *entries(): MapIterator<[number, TaskRow]> {
    for (const node of this.keys()) yield [node, this.get(node) as TaskRow];
  }

  [Symbol.iterator](): MapIterator<[number, TaskRow]> {
    return this.entries();
  }

  forEach(visit: (task: TaskRow, node: number, all: ReadonlyMap<number, TaskRow>) => void): void {
    for (const [node, task] of this) visit(task, node, this);
  }
}
