// The ends of logs that receive pushes: the size of a task's log, and the last chunks of a hand-out. With these, a repeated push is
// recognised: a worker repeats only what was not acknowledged. They stay in memory for tasks that push; otherwise they are read from rows.

import { hash } from "node:crypto";
import type { Scan, TableRows, Value } from "../rows.ts";
import { type LogHead, type LogRow, unpacked } from "../tables/log.ts";
import type { Tx } from "../tx.ts";
import { type LogBatch, type LogChunk, pushChunksMax } from "./store.ts";

/** Twice the largest push, so that a whole push is recognised while its chunks are in memory. */
const comparedMax = 2 * pushChunksMax;
/** Maximum number of tasks whose newest chunks are in memory, and of chunks over all of them: about 30 MB. */
const tasksKeptMax = 5_000;
const chunksKeptMax = 200_000;
/**
 * Maximum number of chunks that are read back, and of bytes of their rows: the largest push of most workers. They are read in a
 * transaction, and all other transactions wait for it. An older chunk that is pushed again would be stored twice.
 */
const readBackMax = 4_000;
const readBackBytes = 2 * 1_048_576;
/** Rows per read when searching the newest chunks of a hand-out. */
const pageRows = 16;

/** How often each of the newest chunks of a hand-out was stored, by key, oldest first. */
export type StoredKeys = Map<string, number>;

export interface Tail {
  bytes: number;
  readonly grants: Map<number, StoredKeys>;
}

export class Tails {
  readonly #rows: TableRows<LogRow>;
  readonly #heads: TableRows<LogHead>;
  readonly #tails = new Map<string, Tail>();
  #chunksKept = 0;

  constructor(rows: TableRows<LogRow>, heads: TableRows<LogHead>) {
    this.#rows = rows;
    this.#heads = heads;
  }

  of(tx: Tx, taskId: string): Tail {
    const tail = this.#tails.get(taskId) ?? {
      bytes: this.#heads.total(tx, { by: ["task_id"], equal: [taskId] }, "bytes").sum,
      grants: new Map(),
    };
    // Moved to the end: the tasks at the front have been quiet for longest.
    this.#tails.delete(taskId);
    this.#tails.set(taskId, tail);
    return tail;
  }

  /** The chunks that the batch's hand-out has stored. */
  keys(tx: Tx, tail: Tail, batch: LogBatch): StoredKeys {
    const remembered = tail.grants.get(batch.grant);
    if (remembered !== undefined) return remembered;
    const stored = this.#load(tx, batch);
    tail.grants.set(batch.grant, stored);
    this.#chunksKept += stored.size;
    return stored;
  }

  /** Records that chunks with these keys and this size were added. */
  add(tx: Tx, tail: Tail, stored: StoredKeys, keys: readonly string[], bytes: number): void {
    const before = stored.size;
    for (const key of keys) stored.set(key, (stored.get(key) ?? 0) + 1);
    forgetOldest(stored, comparedMax);
    this.#chunksKept += stored.size - before;
    tail.bytes += bytes;
    tx.undo(() => this.#takeBack(tail, stored, keys, bytes));
    tx.after(() => this.#forgetQuiet());
  }

  #takeBack(tail: Tail, stored: StoredKeys, keys: readonly string[], bytes: number): void {
    const before = stored.size;
    for (const key of keys) {
      const count = (stored.get(key) ?? 0) - 1;
      if (count > 0) stored.set(key, count);
      else stored.delete(key);
    }
    this.#chunksKept += stored.size - before;
    tail.bytes -= bytes;
  }

  /** Called only between batches: chunks that a batch has not written yet could not be read back. */
  #forgetQuiet(): void {
    for (const [taskId, tail] of this.#tails) {
      if (this.#tails.size <= tasksKeptMax && this.#chunksKept <= chunksKeptMax) return;
      for (const stored of tail.grants.values()) this.#chunksKept -= stored.size;
      this.#tails.delete(taskId);
    }
  }

  #load(tx: Tx, { taskId, attempt, grant }: LogBatch): StoredKeys {
    const stored: StoredKeys = new Map();
    let bytes = 0;
    for (let below: Value[] | undefined; ; ) {
      const by = ["task_id", "attempt", "id"];
      const enough = { chars: readBackBytes - bytes, of: ["bytes"] };
      const scan: Scan = { by, equal: [taskId, attempt], below, backwards: true, limit: pageRows, enough };
      let last: LogRow | null = null;
      let rows = 0;
      for (const row of this.#rows.scan(tx, scan)) {
        last = row;
        rows++;
        bytes += row.bytes;
        if (row.grant === grant) addKeys(stored, unpacked(row.chunks));
        if (stored.size >= readBackMax || bytes >= readBackBytes) return oldestFirst(stored);
      }
      if (last === null || rows < pageRows) return oldestFirst(stored);
      below = [last.id];
    }
  }
}

function addKeys(stored: StoredKeys, chunks: readonly LogChunk[]): void {
  for (const chunk of chunks) {
    const key = keyOf(chunk);
    stored.set(key, (stored.get(key) ?? 0) + 1);
  }
}

/** Reverses the order: chunks are read newest first, but the oldest are dropped first. */
function oldestFirst(stored: StoredKeys): StoredKeys {
  return new Map([...stored].reverse());
}

/** The chunks that no earlier push has stored, with their keys. The n-th of equal chunks in one batch is new if fewer were stored. */
export function freshOf(chunks: readonly LogChunk[], stored: ReadonlyMap<string, number>): { fresh: LogChunk[]; keys: string[] } {
  const fresh: LogChunk[] = [];
  const keys: string[] = [];
  const seen = new Map<string, number>();
  for (const chunk of chunks) {
    const key = keyOf(chunk);
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    if (count <= (stored.get(key) ?? 0)) continue;
    fresh.push(chunk);
    keys.push(key);
  }
  return { fresh, keys };
}

function keyOf(chunk: LogChunk): string {
  return `${chunk.stream} ${chunk.sequence} ${chunk.at} ${hash("sha256", chunk.data, "base64")}`;
}

function forgetOldest(stored: StoredKeys, max: number): void {
  for (const key of stored.keys()) {
    if (stored.size <= max) return;
    stored.delete(key);
  }
}
