// Parts on SQLite. What a put costs does not depend on how many parts its task has: the number of the last one is remembered, and a
// uid that is there already is noticed by the index that would hold it twice. So no earlier part is read.

import { fence, type Hold, isOpen, type Task } from "../../board/task.ts";
import type { Clock } from "../../clock.ts";
import { LongshoreError } from "../../errors.ts";
import { checkParts, checkUids } from "../../part/check.ts";
import { type NewPart, type Part, type PartPage, type PartStore, pagePartsMax, partBytesMax, taskPartsMax } from "../../part/store.ts";
import { Watchers } from "../../part/watchers.ts";
import type { Verdict } from "../../verdict.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database, SqlRow } from "./driver.ts";
import { PartReads } from "./part-reads.ts";
import { Additions, type Rows } from "./rows.ts";

export interface SqlitePartsOptions {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  tasks: Rows<Task>;
  /** Inside an operation: a step has given a part, for the first time by what its row says. True when its run waits for that. */
  first: (task: Task) => boolean;
}

/** Tasks whose last number is remembered; that of another is read, which costs one look at the end of an index. */
const tailsKeptMax = 10_000;

interface Put {
  task: Task;
  parts: readonly NewPart[];
  at: number;
}

export class SqliteParts implements PartStore {
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #tasks: Rows<Task>;
  readonly #first: SqlitePartsOptions["first"];
  readonly #sql: ReturnType<typeof prepareStatements>;
  readonly #puts: Additions<Put>;
  readonly #reads: PartReads;
  readonly #watchers = new Watchers();
  /** The number of the last part, by task and life; of those alone that were put to lately. */
  readonly #tails = new Map<string, number>();

  constructor({ db, commit, clock, tasks, first }: SqlitePartsOptions) {
    this.#commit = commit;
    this.#clock = clock;
    this.#tasks = tasks;
    this.#first = first;
    this.#sql = prepareStatements(db);
    this.#puts = new Additions(commit, (put) => this.#write(put));
    // After the parts: what is put and finished in one commit is there when it is finished.
    this.#reads = new PartReads(db, commit);
  }

  async put(hold: Hold, parts: readonly NewPart[]): Promise<Verdict> {
    checkParts(parts);
    return this.#commit.run(() => this.#putNow(hold, parts));
  }

  read(taskId: string, after: number, limit: number): Promise<PartPage> {
    const source = this.#tasks.get(taskId);
    if (!hasLife(source)) return Promise.resolve(notBegun());
    const parts = this.#scan(source, { after, upTo: null, limit: Math.min(limit, pagePartsMax), bytes: partBytesMax });
    return Promise.resolve({ parts, ended: endOf(source) });
  }

  count(taskId: string): Promise<number> {
    const task = this.#tasks.get(taskId);
    return Promise.resolve(hasLife(task) ? this.#tail(task) : 0);
  }

  async finish(reader: Hold, sourceId: string, uids: readonly string[]): Promise<Verdict> {
    checkUids(uids);
    return this.#commit.run(() => {
      const { verdict, task } = this.#fenced(reader);
      const source = this.#tasks.get(sourceId);
      if (verdict === "ok" && task !== null && source !== null && uids.length > 0)
        this.#reads.add({ reader: task, source, uids, sequenceOf: (uid) => this.#sql.sequence(source, uid) });
      return verdict;
    });
  }

  unread(readerId: string, taskId: string, after: number, limit: number): Promise<PartPage> {
    const source = this.#tasks.get(taskId);
    if (!hasLife(source)) return Promise.resolve(notBegun());
    const reader = this.#tasks.get(readerId);
    if (reader === null) return this.read(taskId, after, limit);
    const parts: Part[] = [];
    let bytes = partBytesMax;
    for (const gap of this.#reads.gaps(reader, source, after)) {
      const found = this.#scan(source, { ...gap, limit: Math.min(limit, pagePartsMax) - parts.length, bytes });
      parts.push(...found);
      for (const { value } of found) bytes -= value.length;
      // Between two stretches that were finished there is at least one part: an empty gap is the last.
      if (found.length === 0 || parts.length >= limit || bytes <= 0) break;
    }
    return Promise.resolve({ parts, ended: endOf(source) });
  }

  watch(taskId: string, changed: () => void): () => void {
    return this.#watchers.watch(taskId, changed);
  }

  /** To be called after each commit that changed this task. */
  taskChanged(task: Task): void {
    if (!this.#watchers.idle && !isOpen(task.state)) this.#watchers.tell(task.id);
  }

  #putNow(hold: Hold, parts: readonly NewPart[]): Verdict {
    const { verdict, task } = this.#fenced(hold);
    if (verdict === "stale" && task !== null && this.#wasPut(task, hold, parts)) return "again";
    if (verdict !== "ok" || task === null || parts.length === 0) return verdict;
    if (this.#tail(task) + parts.length > taskPartsMax) throw tooMany(task.id);
    this.#puts.add({ task, parts, at: this.#clock.now() });
    if (task.runId !== null && !task.streamed && this.#first(task)) this.#tasks.put(task.id, { ...task, streamed: true });
    const key = tailKey(task);
    this.#commit.undo(() => this.#tails.delete(key));
    this.#commit.after(() => this.#watchers.tell(task.id));
    return verdict;
  }

  /** The task only where there is one. A task that is being cancelled takes no more part. */
  #fenced(hold: Hold): { verdict: Verdict; task: Task | null } {
    const task = this.#tasks.get(hold.taskId);
    const verdict = fence(task ?? undefined, hold, "extend", this.#clock.now(), () => null);
    if (verdict !== "current") return { verdict, task };
    return { verdict: task?.state === "cancelling" ? "cancel" : "ok", task };
  }

  /** Whether each of them was put under this very grant. Asked of late ones only. */
  #wasPut(task: Task, hold: Hold, parts: readonly NewPart[]): boolean {
    return hold.grant !== undefined && parts.length > 0 && parts.every(({ uid }) => this.#sql.grant(task, uid) === hold.grant);
  }

  /** Inside the transaction. */
  #write({ task, parts, at }: Put): void {
    let tail = this.#tail(task);
    for (const part of parts) {
      if (this.#sql.insert(task, part, tail + 1, at)) tail++;
      else this.#sql.replace(task, part, at);
    }
    this.#keepTail(tailKey(task), tail);
  }

  #tail(task: Task): number {
    return this.#tails.get(tailKey(task)) ?? this.#sql.last(task);
  }

  #keepTail(key: string, tail: number): void {
    // Deleted and set again: the first of the map is the one that was not put to for longest.
    this.#tails.delete(key);
    if (this.#tails.size >= tailsKeptMax) this.#tails.delete(this.#tails.keys().next().value as string);
    this.#tails.set(key, tail);
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

function tailKey({ id, firstAttempt }: Task): string {
  return `${id}/${firstAttempt}`;
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

function tooMany(taskId: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `Task ${taskId} has ${taskPartsMax} parts, which is the limit: cut it into several steps.`);
}

/** A life is named by its first attempt. */
function prepareStatements(db: Database) {
  const insert = db.prepare(
    "INSERT INTO part (task_id, life, sequence, uid, grant_count, at, value) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
  );
  const ofUid = "task_id = ? AND life = ? AND uid = ?";
  const replace = db.prepare(`UPDATE part SET value = ?, grant_count = ?, at = ? WHERE ${ofUid} AND grant_count < ?`);
  const byUid = db.prepare(`SELECT sequence, grant_count FROM part WHERE ${ofUid}`);
  const last = db.prepare("SELECT sequence FROM part WHERE task_id = ? AND life = ? ORDER BY sequence DESC LIMIT 1");
  const scan = db.prepare(
    `SELECT uid, sequence, value, grant_count, at FROM part WHERE task_id = ? AND life = ? AND sequence > ? AND sequence <= ?
     ORDER BY sequence LIMIT ?`,
  );
  return {
    /** False when the uid is there already. */
    insert(task: Task, { uid, value }: NewPart, sequence: number, at: number): boolean {
      const result = insert.run(task.id, task.firstAttempt, sequence, uid, task.grant, at, value) as { changes: number | bigint };
      return Number(result.changes) === 1;
    },
    replace: (task: Task, { uid, value }: NewPart, at: number) =>
      replace.run(value, task.grant, at, task.id, task.firstAttempt, uid, task.grant),
    sequence: (task: Task, uid: string) => (byUid.get(task.id, task.firstAttempt, uid)?.sequence as number | undefined) ?? null,
    grant: (task: Task, uid: string) => (byUid.get(task.id, task.firstAttempt, uid)?.grant_count as number | undefined) ?? null,
    last: (task: Task) => (last.get(task.id, task.firstAttempt)?.sequence as number | undefined) ?? 0,
    scan: (task: Task, { after, upTo, limit }: { after: number; upTo: number | null; limit: number }) =>
      scan.iterate(task.id, task.firstAttempt, after, upTo ?? Number.MAX_SAFE_INTEGER, limit),
  };
}
