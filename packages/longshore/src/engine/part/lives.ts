// The uids of the parts of tasks that are put to or read lately: their hashes in memory, and on disk a row for each put, written at the end
// of the table like the parts themselves. An index by uid would do without the memory, but uids are mostly hashes or random: each part then
// writes a page of its own somewhere in the index, and the hundred thousandth costs twice what the first did.

import type { Task } from "../board/task.ts";
import type { Database } from "../../store/sqlite/driver.ts";
import { hashBytes, hashOf, UidTable } from "./uid-table.ts";

/** Over all tables: eight tasks of a million parts, or a thousand of eight thousand. What is dropped is read again when it is needed. */
const bytesMax = 128 * 1_024 * 1_024;
/** Tables at most: each takes half a kilobyte, however few parts it has. */
const tablesMax = 10_000;

/** The parts of one life of a task. */
export interface Known {
  /** The number of the last part. */
  last: number;
  readonly uids: UidTable;
}

export class PartUids {
  readonly #known = new Map<string, Known>();
  readonly #sql: ReturnType<typeof prepareStatements>;
  #bytes = 0;

  constructor(db: Database) {
    this.#sql = prepareStatements(db);
  }

  /** The number of the last part, without the uids when they are not at hand. */
  last(task: Task): number {
    return this.#known.get(keyOf(task))?.last ?? this.#sql.last(task);
  }

  /** The number of the part with this uid; null when there is none. */
  sequence(task: Task, uid: string, known: Known = this.of(task)): number | null {
    for (const sequence of known.uids.find(hashOf(uid))) if (this.#sql.uid(task, sequence) === uid) return sequence;
    return null;
  }

  of(task: Task): Known {
    const key = keyOf(task);
    const known = this.#known.get(key) ?? this.#load(task);
    // Taken out and put in again: the first of the map is the longest unused.
    this.drop(task);
    this.#known.set(key, known);
    this.#bytes += known.uids.bytes;
    for (const oldest of this.#known.keys()) {
      if ((this.#bytes <= bytesMax && this.#known.size <= tablesMax) || oldest === key) break;
      this.#forget(oldest);
    }
    return known;
  }

  /** Inside the transaction: parts with these uids were added after the last. */
  add(task: Task, known: Known, uids: readonly string[]): void {
    if (uids.length === 0) return;
    const hashes = Buffer.alloc(uids.length * hashBytes);
    const before = known.uids.bytes;
    const first = known.last + 1;
    uids.forEach((uid, at) => {
      const hash = hashOf(uid);
      hashes.writeUInt32LE(hash, at * hashBytes);
      known.uids.add(hash, first + at);
    });
    known.last += uids.length;
    this.#bytes += known.uids.bytes - before;
    this.#sql.keep(task, first, hashes);
  }

  /** What is known of the task may be wrong; it is read again. */
  drop(task: Task): void {
    this.#forget(keyOf(task));
  }

  #forget(key: string): void {
    const known = this.#known.get(key);
    if (known === undefined) return;
    this.#known.delete(key);
    this.#bytes -= known.uids.bytes;
  }

  #load(task: Task): Known {
    const known: Known = { last: 0, uids: new UidTable() };
    for (const { first, hashes } of this.#sql.kept(task)) {
      const bytes = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.byteLength);
      const count = bytes.length / hashBytes;
      for (let at = 0; at < count; at++) known.uids.add(bytes.readUInt32LE(at * hashBytes), first + at);
      known.last = first + count - 1;
    }
    return known;
  }
}

/** A life is named by its first attempt. */
function keyOf({ id, firstAttempt }: Task): string {
  return `${id}/${firstAttempt}`;
}

function prepareStatements(db: Database) {
  const keep = db.prepare("INSERT INTO part_uid (task_id, life, first, hashes) VALUES (?, ?, ?, ?)");
  const kept = db.prepare("SELECT first, hashes FROM part_uid WHERE task_id = ? AND life = ? ORDER BY first");
  const last = db.prepare("SELECT sequence FROM part WHERE task_id = ? AND life = ? ORDER BY sequence DESC LIMIT 1");
  const uid = db.prepare("SELECT uid FROM part WHERE task_id = ? AND life = ? AND sequence = ?");
  return {
    keep: (task: Task, first: number, hashes: Uint8Array) => keep.run(task.id, task.firstAttempt, first, hashes),
    kept: (task: Task) => kept.iterate(task.id, task.firstAttempt) as IterableIterator<{ first: number; hashes: Uint8Array }>,
    last: (task: Task) => (last.get(task.id, task.firstAttempt)?.sequence as number | undefined) ?? 0,
    uid: (task: Task, sequence: number) => uid.get(task.id, task.firstAttempt, sequence)?.uid as string | undefined,
  };
}
