// Parts on SQLite. What a put costs does not depend on how many parts its task has: it reads none of them, knows by part-uids.ts which uids
// are new, and writes at the end of its tables only.

import type { Clock } from "../../clock.ts";
import { fence, type Hold, isOpen, type Task } from "../board/task.ts";
import { Additions, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { checkParts, checkUids } from "./check.ts";
import {
  type NewPart,
  type Part,
  type PartPage,
  type PartStore,
  pagePartsMax,
  partBytesMax,
  taskPartsMax,
} from "./store.ts";
import { Watchers } from "./watchers.ts";
import { type Room, rowBytes, type StoredBytes } from "../stored-bytes.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { LongshoreError } from "../../errors.ts";
import type { Verdict } from "../../verdict.ts";
import type { Database, SqlRow, SqlValue } from "../../store/sqlite/driver.ts";
import { PartReads } from "./reads.ts";
import { PartUids } from "./lives.ts";
import { RecentParts } from "./recent.ts";

export interface LocalPartsDeps {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  tasks: Rows<Task>;
  stored: StoredBytes;
  /** A step has produced a part, the first by its row. True when its run waits for that. */
  first: (tx: Tx, task: Task) => boolean;
}

interface Put {
  task: Task;
  parts: readonly NewPart[];
  at: number;
}

export class LocalParts implements PartStore {
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #tasks: Rows<Task>;
  readonly #first: LocalPartsDeps["first"];
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #puts: Additions<Put>;
  readonly #reads: PartReads;
  readonly #watchers = new Watchers();
  readonly #uids: PartUids;
  readonly #recent = new RecentParts();
  readonly #room: Room;
  /** Notified of the parts of each commit. */
  readonly onPut = new Set<(parts: readonly NewPart[]) => void>();

  constructor({ db, commit, clock, tasks, first, stored }: LocalPartsDeps) {
    this.#room = stored.of("parts");
    this.#commit = commit;
    this.#clock = clock;
    this.#tasks = tasks;
    this.#first = first;
    this.#sql = prepareStatements(db);
    this.#uids = new PartUids(db);
    this.#puts = new Additions(
      commit,
      (put, tx) => this.#write(put, tx),
      ({ parts }) => parts.reduce((chars, { value }) => chars + value.length, 0),
    );
    // After the parts: what is put and finished in one commit is there when it is finished.
    this.#reads = new PartReads(db, commit);
  }

  async put(hold: Hold, parts: readonly NewPart[]): Promise<Verdict> {
    checkParts(parts);
    return this.#commit.run((tx) => this.#putNow(tx, hold, parts));
  }

  unkept(hold: Hold, uids: readonly string[]): Promise<readonly string[]> {
    return this.#commit.read((tx) => {
      const { verdict, task } = this.#fenced(tx, hold);
      if (verdict !== "ok" || task === null) return uids;
      const isKept = this.#recent.of(task);
      return uids.filter((uid) => !isKept(uid));
    });
  }

  read(taskId: string, after: number, limit: number): Promise<PartPage> {
    return this.#commit.read((tx) => this.#page(this.#tasks.get(tx, taskId), after, limit));
  }

  count(taskId: string): Promise<number> {
    return this.#commit.read((tx) => {
      const task = this.#tasks.get(tx, taskId);
      return hasLife(task) ? this.#uids.last(task) : 0;
    });
  }

  absent(taskId: string, uids: readonly string[]): Promise<readonly string[]> {
    return this.#commit.read((tx) => {
      const task = this.#tasks.get(tx, taskId);
      if (!hasLife(task)) return uids;
      const known = this.#uids.of(task);
      return uids.filter((uid) => this.#uids.sequence(task, uid, known) === null);
    });
  }

  async finish(reader: Hold, sourceId: string, uids: readonly string[]): Promise<Verdict> {
    checkUids(uids);
    return this.#commit.run((tx) => {
      const { verdict, task } = this.#fenced(tx, reader);
      const source = this.#tasks.get(tx, sourceId);
      if (verdict === "ok" && task !== null && source !== null && uids.length > 0)
        this.#reads.add(tx, { reader: task, source, uids, sequenceOf: (uid) => this.#uids.sequence(source, uid) });
      return verdict;
    });
  }

  unread(readerId: string, taskId: string, after: number, limit: number): Promise<PartPage> {
    return this.#commit.read((tx) => {
      const source = this.#tasks.get(tx, taskId);
      const reader = this.#tasks.get(tx, readerId);
      return reader === null || !hasLife(source) ? this.#page(source, after, limit) : this.#unreadPage(reader, source, after, limit);
    });
  }

  watch(taskId: string, changed: () => void): () => void {
    return this.#watchers.watch(taskId, changed);
  }

  /** What earlier operations of the same batch have put. */
  pending(tx: Tx): readonly NewPart[] {
    return this.#puts.pending(tx).flatMap(({ parts }) => parts);
  }

  /** To be called after each commit that changed this task. */
  taskChanged(task: Task): void {
    if (!this.#watchers.idle && !isOpen(task.state)) this.#watchers.tell(task.id);
  }

  #putNow(tx: Tx, hold: Hold, parts: readonly NewPart[]): Verdict {
    const { verdict, task } = this.#fenced(tx, hold);
    if (verdict === "stale" && task !== null && this.#wasPut(task, hold, parts)) return "again";
    if (verdict !== "ok" || task === null || parts.length === 0) return verdict;
    const isKept = this.#recent.of(task);
    // What this hand-out has put already stays as it is.
    const fresh = parts.filter(({ uid }) => !isKept(uid));
    if (fresh.length > 0) this.#add(tx, task, fresh);
    if (task.runId !== null && !task.streamed && this.#first(tx, task)) this.#tasks.put(tx, task.id, { ...task, streamed: true });
    return verdict;
  }

  #add(tx: Tx, task: Task, parts: readonly NewPart[]): void {
    if (this.#uids.last(task) + parts.length > taskPartsMax) throw tooMany(task.id);
    // As if all of them were new; what is not gives its room back when it is written.
    this.#room.take(
      tx,
      parts.reduce((sum, part) => sum + bytesOf(part), 0),
    );
    this.#puts.add(tx, { task, parts, at: this.#clock.now() });
    tx.undo(() => this.#uids.drop(task));
    tx.after(() => {
      this.#recent.add(
        task,
        parts.map(({ uid }) => uid),
      );
      for (const listener of this.onPut) listener(parts);
      this.#watchers.tell(task.id);
    });
  }

  /** The task only where there is one. A task that is being cancelled takes no more part. */
  #fenced(tx: ReadTx, hold: Hold): { verdict: Verdict; task: Task | null } {
    const task = this.#tasks.get(tx, hold.taskId);
    const verdict = fence(task ?? undefined, hold, "extend", this.#clock.now(), () => null);
    if (verdict !== "current") return { verdict, task };
    return { verdict: task?.state === "cancelling" ? "cancel" : "ok", task };
  }

  /** Whether each of them was put under this very grant. Called for late ones only. */
  #wasPut(task: Task, hold: Hold, parts: readonly NewPart[]): boolean {
    return hold.grant !== undefined && parts.length > 0 && parts.every(({ uid }) => this.#grantOf(task, uid) === hold.grant);
  }

  #grantOf(task: Task, uid: string): number | null {
    const sequence = this.#uids.sequence(task, uid);
    return sequence === null ? null : this.#sql.grant(task, sequence);
  }

  /** Inside the transaction. */
  #write({ task, parts, at }: Put, tx: Tx): void {
    const known = this.#uids.of(task);
    const fresh = new Map<string, NewPart>();
    for (const part of parts) {
      // Of two in one call the first counts.
      const there = fresh.has(part.uid) ? null : this.#uids.sequence(task, part.uid, known);
      if (there !== null) this.#room.addNow(tx, this.#sql.replace(task, part, there, at) - bytesOf(part));
      else if (fresh.has(part.uid)) this.#room.addNow(tx, -bytesOf(part));
      else fresh.set(part.uid, part);
    }
    this.#sql.insert(task, [...fresh.values()], known.last + 1, at);
    this.#uids.add(task, known, [...fresh.keys()]);
  }

  #page(source: Task | null, after: number, limit: number): PartPage {
    if (!hasLife(source)) return notBegun();
    const parts = this.#scan(source, { after, upTo: null, limit: Math.min(limit, pagePartsMax), bytes: partBytesMax });
    return { parts, ended: endOf(source) };
  }

  #unreadPage(reader: Task, source: Task, after: number, limit: number): PartPage {
    const parts: Part[] = [];
    let bytes = partBytesMax;
    for (const gap of this.#reads.gaps(reader, source, after)) {
      const found = this.#scan(source, { ...gap, limit: Math.min(limit, pagePartsMax) - parts.length, bytes });
      parts.push(...found);
      for (const { value } of found) bytes -= value.length;
      // Between two stretches that were finished there is at least one part: an empty gap is the last.
      if (found.length === 0 || parts.length >= limit || bytes <= 0) break;
    }
    return { parts, ended: endOf(source) };
  }

  #scan(source: Task, page: { after: number; upTo: number | null; limit: number; bytes: number }): Part[] {
    const parts: Part[] = [];
    let { bytes } = page;
    for (const row of this.#sql.scan(source, page)) {
      const part = partOf(row);
      parts.push(part);
      bytes -= part.value.length;
      if (bytes <= 0) break;
    }
    return parts;
  }
}

/** A step that its run has forgotten has begun no new life yet. */
function hasLife(task: Task | null): task is Task {
  return task !== null && task.state !== "forgotten";
}

function notBegun(): PartPage {
  return { parts: [], ended: null };
}

function endOf({ state }: Task): PartPage["ended"] {
  return isOpen(state) ? null : state;
}

function partOf(row: SqlRow): Part {
  return {
    uid: row.uid as string,
    sequence: row.sequence as number,
    value: row.value as string,
    grant: row.grant_count as number,
    at: row.at as number,
  };
}

function bytesOf({ uid, value }: NewPart): number {
  return rowBytes + Buffer.byteLength(uid) + Buffer.byteLength(value);
}

function tooMany(taskId: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `Task ${taskId} has ${taskPartsMax} parts, which is the limit: cut it into several steps.`);
}

/** Rows of one statement where there are as many: a third less for each than one by one (4.9 and 6.5 us); more of them gain nothing. */
const rowsAtOnce = 10;

/** A life is named by its first attempt. */
function prepareStatements(db: Database) {
  const inserting = (rows: number) => {
    const values = Array.from({ length: rows }, () => "(?, ?, ?, ?, ?, ?, ?)");
    return db.prepare(`INSERT INTO part (task_id, life, sequence, uid, grant_count, at, value) VALUES ${values.join(", ")}`);
  };
  const insert = inserting(1);
  const insertMany = inserting(rowsAtOnce);
  const ofPart = "task_id = ? AND life = ? AND sequence = ?";
  const replace = db.prepare(`UPDATE part SET value = ?, grant_count = ?, at = ? WHERE ${ofPart} AND grant_count < ? RETURNING sequence`);
  const bytes = db.prepare(`SELECT octet_length(value) AS bytes FROM part WHERE ${ofPart}`);
  const grant = db.prepare(`SELECT grant_count FROM part WHERE ${ofPart}`);
  const scan = db.prepare(
    `SELECT uid, sequence, value, grant_count, at FROM part WHERE task_id = ? AND life = ? AND sequence > ? AND sequence <= ?
     ORDER BY sequence LIMIT ?`,
  );
  return {
    /** Under the numbers from `first` on. */
    insert: ({ id, firstAttempt, grant }: Task, parts: readonly NewPart[], first: number, at: number) => {
      for (let from = 0; from < parts.length; ) {
        const rows = parts.length - from >= rowsAtOnce ? rowsAtOnce : 1;
        const values: SqlValue[] = [];
        for (let to = from + rows; from < to; from++) {
          const { uid, value } = parts[from] as NewPart;
          values.push(id, firstAttempt, first + from, uid, grant, at, value);
        }
        (rows === 1 ? insert : insertMany).run(...values);
      }
    },
    /** Unless the value is of the same grant. Returns how many bytes more there are. */
    replace: (task: Task, { value }: NewPart, sequence: number, at: number): number => {
      const key = [task.id, task.firstAttempt, sequence] as const;
      const before = Number(bytes.get(...key)?.bytes);
      return replace.get(value, task.grant, at, ...key, task.grant) === undefined ? 0 : Buffer.byteLength(value) - before;
    },
    grant: (task: Task, sequence: number) => (grant.get(task.id, task.firstAttempt, sequence)?.grant_count as number | undefined) ?? null,
    scan: (task: Task, { after, upTo, limit }: { after: number; upTo: number | null; limit: number }) =>
      scan.iterate(task.id, task.firstAttempt, after, upTo ?? Number.MAX_SAFE_INTEGER, limit),
  };
}
