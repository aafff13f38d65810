// The parts of tasks that were recently written or read: hashes of their uids in memory. On disk, each commit appends one row of hashes for
// each task with new parts. An index by uid would need no memory. But uids are mostly random, so each part would write a separate page of
// the index: the hundred thousandth part would cost twice as much as the first.

import type { TaskRow } from "../board/task.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, TableRows } from "../rows.ts";
import {
  type PartHead,
  type PartRow,
  partHeadTable,
  partNumberTable,
  partTable,
  partTimeTable,
  partValue,
  type UidRow,
  uidTable,
} from "../tables/part.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { Writable } from "../writables.ts";
import type { PartTime, TaskLife } from "./store.ts";
import { hashBytes, hashOf, UidTable } from "./uid-table.ts";

/**
 * Maximum size of all tables together: eight tasks with a million parts each, or a thousand with eight thousand each. Dropped tables are
 * read again when they are needed.
 */
const bytesMax = 128 * 1_024 * 1_024;
/** Maximum number of tables: each takes half a kilobyte, however few parts it has. */
const tablesMax = 10_000;
/** Reading this many hashes counts as one step of a batch: a batch ends soon after it has read the hashes of a million parts. */
const stepHashes = 20;

/** The parts of one life of a task. */
export interface Life {
  readonly taskId: string;
  /** The number of the life's first attempt. */
  readonly life: number;
  /** The number of the last part. */
  last: number;
  /** The number of the last part that is committed. */
  committed: number;
  readonly uids: UidTable;
  /** The parts of this batch, from the number after `committed` on. */
  added: PartRow[];
  /** Earlier parts whose value changes in this batch, by their numbers. */
  readonly replaced: Map<number, PartRow>;
}

export class Lives implements Writable {
  readonly #rows: TableRows<PartRow>;
  readonly #heads: TableRows<PartHead>;
  readonly #numbers: TableRows<Pick<PartRow, "sequence">>;
  readonly #times: TableRows<PartTime>;
  readonly #hashes: TableRows<UidRow>;
  readonly #lives = new Map<string, Life>();
  /** Lives that the current batch has changed: they stay until it ends, because they cannot be read back before. */
  readonly #changed = new Set<Life>();
  #bytes = 0;

  constructor(store: RowStore, commit: GroupCommit) {
    this.#rows = store.table(partTable);
    this.#heads = store.table(partHeadTable);
    this.#numbers = store.table(partNumberTable);
    this.#times = store.table(partTimeTable);
    this.#hashes = store.table(uidTable);
    commit.join(this);
  }

  /** When the part with this number was stored. */
  time(tx: ReadTx, { id, firstAttempt }: TaskLife, sequence: number): PartTime | null {
    return this.#times.get(tx, id, firstAttempt, sequence);
  }

  /** The number of parts; does not load the uids when they are not in memory. */
  count(tx: ReadTx, task: TaskLife): number {
    const known = this.#lives.get(keyOf(task));
    if (known !== undefined) return tx.isOperation ? known.last : known.committed;
    const [newest] = this.#numbers.scan(tx, {
      ...{ by: ["task_id", "life", "sequence"], equal: [task.id, task.firstAttempt] },
      ...{ backwards: true, limit: 1 },
    });
    return newest?.sequence ?? 0;
  }

  of(tx: ReadTx, task: TaskRow): Life {
    const key = keyOf(task);
    const known = this.#lives.get(key);
    const life = known ?? this.#load(tx, task);
    if (known !== undefined) this.#lives.delete(key);
    else {
      this.#bytes += life.uids.bytes;
      if (tx.isOperation) (tx as Tx).spend(life.last / stepHashes);
    }
    // Added at the end: the first entry of the map is the least recently used.
    this.#lives.set(key, life);
    this.#forgetOldest(life);
    return life;
  }

  /** Drops the lives of removed tasks. Must not be called inside a batch. */
  forget(isRemoved: (taskId: string) => boolean): void {
    for (const [key, life] of this.#lives) if (isRemoved(life.taskId)) this.#drop(key, life);
  }

  /** The number of the part with this uid; null when there is none. */
  sequence(tx: ReadTx, life: Life, uid: string): number | null {
    for (const sequence of life.uids.find(hashOf(uid))) {
      if (!tx.isOperation && sequence > life.committed) continue;
      const part = this.#pending(life, sequence) ?? this.#heads.get(tx, life.taskId, life.life, sequence);
      if (part?.uid === uid) return sequence;
    }
    return null;
  }

  /** The part with this number. */
  head(tx: ReadTx, life: Life, sequence: number): PartHead | null {
    const pending = tx.isOperation ? this.#pending(life, sequence) : undefined;
    if (pending === undefined) return this.#heads.get(tx, life.taskId, life.life, sequence);
    return { uid: pending.uid, grant: pending.grant, bytes: Buffer.byteLength(pending.value) };
  }

  /** Adds parts after the last one. */
  add(tx: Tx, life: Life, parts: readonly PartRow[]): void {
    const before = life.uids.bytes;
    this.#changed.add(life);
    for (const part of parts) {
      life.uids.add(hashOf(part.uid), part.sequence);
      life.added.push(part);
      tx.weigh(part.value.length);
    }
    life.last += parts.length;
    this.#bytes += life.uids.bytes - before;
    tx.undo(() => {
      life.last -= parts.length;
      life.added.length -= parts.length;
      for (const part of parts) life.uids.remove(hashOf(part.uid), part.sequence);
    });
  }

  /** Replaces the value of an existing part. */
  replace(tx: Tx, life: Life, part: PartRow): void {
    this.#changed.add(life);
    tx.weigh(part.value.length);
    const at = part.sequence - life.committed - 1;
    if (at >= 0) {
      const before = life.added[at] as PartRow;
      life.added[at] = part;
      tx.undo(() => {
        life.added[at] = before;
      });
      return;
    }
    const before = life.replaced.get(part.sequence);
    life.replaced.set(part.sequence, part);
    tx.undo(() => {
      if (before === undefined) life.replaced.delete(part.sequence);
      else life.replaced.set(part.sequence, before);
    });
  }

  /** Parts that earlier operations of the same batch have put. */
  *pending(_tx: Tx): Generator<PartRow, void> {
    for (const { added, replaced } of this.#changed) {
      yield* added;
      yield* replaced.values();
    }
  }

  get dirty(): boolean {
    for (const { added, replaced } of this.#changed) if (added.length > 0 || replaced.size > 0) return true;
    return false;
  }

  write(): void {
    for (const { taskId, life, committed, added, replaced } of this.#changed) {
      for (const part of replaced.values()) this.#rows.write(part, partValue);
      if (added.length === 0) continue;
      this.#rows.insert(added);
      this.#hashes.insert([{ taskId, life, first: committed + 1, hashes: hashesOf(added) }]);
    }
  }

  applied(): void {
    // Returns early, because clearing an empty set allocates a new one.
    if (this.#changed.size === 0) return;
    for (const life of this.#changed) {
      life.committed = life.last;
      life.added = [];
      life.replaced.clear();
    }
    this.#changed.clear();
  }

  #pending(life: Life, sequence: number): PartRow | undefined {
    return sequence > life.committed ? life.added[sequence - life.committed - 1] : life.replaced.get(sequence);
  }

  #forgetOldest(spared: Life): void {
    if (this.#bytes <= bytesMax && this.#lives.size <= tablesMax) return;
    for (const [key, life] of this.#lives) {
      if (life === spared || this.#changed.has(life)) continue;
      this.#drop(key, life);
      if (this.#bytes <= bytesMax && this.#lives.size <= tablesMax) return;
    }
  }

  #drop(key: string, life: Life): void {
    this.#lives.delete(key);
    this.#bytes -= life.uids.bytes;
  }

  #load(tx: ReadTx, { id, firstAttempt }: TaskRow): Life {
    const life: Life = {
      ...{ taskId: id, life: firstAttempt, last: 0, committed: 0 },
      ...{ uids: new UidTable(), added: [], replaced: new Map<number, PartRow>() },
    };
    for (const { first, hashes } of this.#hashes.scan(tx, { by: ["task_id", "life", "first"], equal: [id, firstAttempt] })) {
      const bytes = Buffer.from(hashes.buffer, hashes.byteOffset, hashes.byteLength);
      const count = bytes.length / hashBytes;
      for (let at = 0; at < count; at++) life.uids.add(bytes.readUInt32LE(at * hashBytes), first + at);
      life.last = first + count - 1;
    }
    life.committed = life.last;
    return life;
  }
}

function hashesOf(parts: readonly PartRow[]): Uint8Array {
  const hashes = Buffer.alloc(parts.length * hashBytes);
  parts.forEach(({ uid }, at) => {
    hashes.writeUInt32LE(hashOf(uid), at * hashBytes);
  });
  return hashes;
}

function keyOf({ id, firstAttempt }: TaskLife): string {
  return `${id}/${firstAttempt}`;
}
