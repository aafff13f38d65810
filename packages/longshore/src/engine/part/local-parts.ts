// Parts as rows. A put reads no other part of its task, because lives.ts knows which uids are new. So its cost does not depend on the number
// of parts.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Verdict } from "../../core/verdict.ts";
import { fence, type Hold, isOpen, isWait, type TaskRow } from "../board/task.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type RowStore, readAll, type TableRows } from "../rows.ts";
import { type Room, rowBytes, type StoredBytes } from "../stored-bytes.ts";
import { type PartRow, partTable } from "../tables/part.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { checkParts, checkUids } from "./check.ts";
import { type Life, Lives } from "./lives.ts";
import { PartReads } from "./reads.ts";
import { RecentParts } from "./recent-parts.ts";
import {
  type NewPart,
  type Part,
  type PartPage,
  type PartStore,
  type PartTime,
  pagePartsMax,
  partBytesMax,
  type ReadProgress,
  type TaskLife,
  taskPartsMax,
} from "./store.ts";
import { Watchers } from "./watchers.ts";

/** Stretches that are counted for one reader: more of them exist only when a reader finishes parts in a random order. */
const progressStretches = 1_000;

export interface LocalPartsDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
  tasks: Rows<TaskRow>;
  stored: StoredBytes;
  /** Called when a step has produced its first part, according to its row. Returns true when its run waits for that. */
  first: (tx: Tx, task: TaskRow) => boolean;
}

export class LocalParts implements PartStore {
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #tasks: Rows<TaskRow>;
  readonly #first: LocalPartsDeps["first"];
  readonly #rows: TableRows<PartRow>;
  readonly #lives: Lives;
  readonly #reads: PartReads;
  readonly #watchers = new Watchers();
  readonly #recent = new RecentParts();
  readonly #room: Room;
  /** Called with the parts of each commit. */
  readonly onPut = new Set<(parts: readonly NewPart[]) => void>();

  constructor({ store, commit, clock, tasks, first, stored }: LocalPartsDeps) {
    this.#room = stored.of("parts");
    this.#commit = commit;
    this.#clock = clock;
    this.#tasks = tasks;
    this.#first = first;
    this.#rows = store.table(partTable);
    this.#lives = new Lives(store, commit);
    this.#reads = new PartReads(store, commit);
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
    return this.#commit.read((tx) => this.#page(tx, this.#tasks.get(tx, taskId), after, limit));
  }

  count(taskId: string): Promise<number> {
    return this.#commit.read((tx) => {
      const task = this.#tasks.get(tx, taskId);
      return hasLife(task) ? this.#lives.count(tx, task) : 0;
    });
  }

  newest(tasks: readonly TaskLife[]): Promise<readonly (PartTime | null)[]> {
    return this.#commit.read((tx) => readAll(tasks, (task) => this.#lives.time(tx, task, this.#lives.count(tx, task))));
  }

  progress(pairs: readonly { readonly reader: TaskLife; readonly source: TaskLife }[]): Promise<readonly (ReadProgress | null)[]> {
    return this.#commit.read((tx) => readAll(pairs, ({ reader, source }) => this.#progress(tx, reader, source)));
  }

  absent(taskId: string, uids: readonly string[]): Promise<readonly string[]> {
    return this.#commit.read((tx) => {
      const task = this.#tasks.get(tx, taskId);
      if (!hasLife(task)) return uids;
      const life = this.#lives.of(tx, task);
      const sequences = readAll(uids, (uid) => this.#lives.sequence(tx, life, uid));
      return uids.filter((_uid, at) => sequences[at] === null);
    });
  }

  async finish(reader: Hold, sourceId: string, uids: readonly string[]): Promise<Verdict> {
    checkUids(uids);
    return this.#commit.run((tx) => {
      const { verdict, task } = this.#fenced(tx, reader);
      const source = this.#tasks.get(tx, sourceId);
      if (verdict === "ok" && task !== null && source !== null && uids.length > 0) this.#finish(tx, task, source, uids);
      return verdict;
    });
  }

  unread(readerId: string, taskId: string, after: number, limit: number): Promise<PartPage> {
    return this.#commit.read((tx) => {
      const source = this.#tasks.get(tx, taskId);
      const reader = this.#tasks.get(tx, readerId);
      return reader === null || !hasLife(source)
        ? this.#page(tx, source, after, limit)
        : this.#unreadPage(tx, reader, source, after, limit);
    });
  }

  /** Forgets the parts of removed tasks and runs, whose ids may be used again. */
  forget(ids: readonly string[]): void {
    const removed = new Set(ids);
    // The id of a run's task begins with the id of the run and a dot.
    const isRemoved = (taskId: string) => removed.has(taskId) || removed.has(taskId.slice(0, Math.max(0, taskId.lastIndexOf("."))));
    this.#lives.forget(isRemoved);
    this.#recent.forget(isRemoved);
  }

  watch(taskId: string, changed: () => void): () => void {
    return this.#watchers.watch(taskId, changed);
  }

  /** Parts that earlier operations of the same batch have put. */
  pending(tx: Tx): Iterable<NewPart> {
    return this.#lives.pending(tx);
  }

  /** Must be called after each commit that changed this task. */
  taskChanged(task: TaskRow): void {
    if (!this.#watchers.idle && !isOpen(task.state)) this.#watchers.tell(task.id);
  }

  #putNow(tx: Tx, hold: Hold, parts: readonly NewPart[]): Verdict {
    const { verdict, task } = this.#fenced(tx, hold);
    if (verdict === "stale" && task !== null && this.#wasPut(tx, task, hold, parts)) return "again";
    if (verdict !== "ok" || task === null || parts.length === 0) return verdict;
    const isKept = this.#recent.of(task);
    // What this hand-out has put already stays as it is.
    const fresh = parts.filter(({ uid }) => !isKept(uid));
    if (fresh.length > 0) this.#add(tx, task, fresh);
    if (task.runId !== null && !task.streamed && this.#first(tx, task)) this.#tasks.put(tx, task.id, { ...task, streamed: true });
    return verdict;
  }

  #add(tx: Tx, task: TaskRow, parts: readonly NewPart[]): void {
    const life = this.#lives.of(tx, task);
    const { added, replaced, bytes } = this.#changes(tx, task, life, parts);
    if (life.last + added.length > taskPartsMax) throw tooMany(task.id);
    // A smaller value is always accepted.
    if (bytes > 0) this.#room.take(tx, bytes);
    else this.#room.add(tx, bytes);
    if (added.length > 0) this.#lives.add(tx, life, added);
    for (const part of replaced) this.#lives.replace(tx, life, part);
    tx.after(() => {
      this.#recent.add(
        task,
        parts.map(({ uid }) => uid),
      );
      for (const listener of this.onPut) listener(parts);
      this.#watchers.tell(task.id);
    });
  }

  /** Returns the new parts, the replaced ones, and the additional bytes. */
  #changes(tx: Tx, task: TaskRow, life: Life, parts: readonly NewPart[]): { added: PartRow[]; replaced: PartRow[]; bytes: number } {
    const sequences = readAll(parts, ({ uid }) => this.#lives.sequence(tx, life, uid));
    const { id: taskId, grant } = task;
    const now = this.#clock.now();
    const added: PartRow[] = [];
    const replaced: PartRow[] = [];
    const seen = new Set<string>();
    let bytes = 0;
    // The fields are written out, because a spread for each part would take a fifth of the time of a put.
    for (let at = 0; at < parts.length; at++) {
      const { uid, value } = parts[at] as NewPart;
      // When a call has the same uid twice, the first part counts.
      if (seen.has(uid)) continue;
      seen.add(uid);
      const sequence = sequences[at] ?? null;
      if (sequence === null) {
        bytes += bytesOf(parts[at] as NewPart);
        added.push({ taskId, life: life.life, sequence: life.last + added.length + 1, uid, grant, at: now, value });
        continue;
      }
      const before = this.#lives.head(tx, life, sequence);
      // What this hand-out has put already stays as it is.
      if (before === null || before.grant >= grant) continue;
      bytes += Buffer.byteLength(value) - before.bytes;
      replaced.push({ taskId, life: life.life, sequence, uid, grant, at: now, value });
    }
    return { added, replaced, bytes };
  }

  #finish(tx: Tx, reader: TaskRow, source: TaskRow, uids: readonly string[]): void {
    const life = this.#lives.of(tx, source);
    const sequences = readAll(uids, (uid) => this.#lives.sequence(tx, life, uid));
    this.#reads.add(
      tx,
      reader,
      source,
      sequences.filter((sequence) => sequence !== null),
    );
  }

  /** Returns the verdict, and the task if it exists. A task that is being cancelled accepts no more parts. */
  #fenced(tx: ReadTx, hold: Hold): { verdict: Verdict; task: TaskRow | null } {
    const task = this.#tasks.get(tx, hold.taskId);
    // No worker produces parts of a wait.
    const verdict = task !== null && isWait(task) ? "stale" : fence(task ?? undefined, hold, "extend", this.#clock.now(), () => null);
    if (verdict !== "current") return { verdict, task };
    return { verdict: task?.state === "cancelling" ? "cancel" : "ok", task };
  }

  /** Whether all of these parts were put under this grant. Called only for late reports. */
  #wasPut(tx: Tx, task: TaskRow, hold: Hold, parts: readonly NewPart[]): boolean {
    if (hold.grant === undefined || parts.length === 0) return false;
    const life = this.#lives.of(tx, task);
    return parts.every(({ uid }) => {
      const sequence = this.#lives.sequence(tx, life, uid);
      return sequence !== null && this.#lives.head(tx, life, sequence)?.grant === hold.grant;
    });
  }

  #progress(tx: ReadTx, reader: TaskLife, source: TaskLife): ReadProgress | null {
    const stretches = this.#reads.stretches(tx, reader, source, progressStretches);
    const [first] = stretches;
    if (first === undefined) return null;
    const read = stretches.reduce((sum, stretch) => sum + stretch.last - stretch.first + 1, 0);
    const oldest = this.#lives.time(tx, source, first.first > 1 ? 1 : first.last + 1);
    return { read, isWhole: stretches.length < progressStretches, oldest };
  }

  #page(tx: ReadTx, source: TaskRow | null, after: number, limit: number): PartPage {
    if (!hasLife(source)) return notBegun();
    const parts = this.#scan(tx, source, { after, upTo: null, limit: Math.min(limit, pagePartsMax), bytes: partBytesMax });
    return { parts, ended: endOf(source) };
  }

  #unreadPage(tx: ReadTx, reader: TaskRow, source: TaskRow, after: number, limit: number): PartPage {
    const parts: Part[] = [];
    let bytes = partBytesMax;
    for (const gap of this.#reads.gaps(tx, reader, source, after)) {
      const found = this.#scan(tx, source, { ...gap, limit: Math.min(limit, pagePartsMax) - parts.length, bytes });
      parts.push(...found);
      for (const { value } of found) bytes -= value.length;
      // Between two finished stretches there is at least one part, so only the last gap can be empty.
      if (found.length === 0 || parts.length >= limit || bytes <= 0) break;
    }
    return { parts, ended: endOf(source) };
  }

  #scan(tx: ReadTx, source: TaskRow, page: { after: number; upTo: number | null; limit: number; bytes: number }): Part[] {
    const { after, upTo, limit } = page;
    const parts: Part[] = [];
    let { bytes } = page;
    const below = upTo === null ? undefined : [upTo + 1];
    const equal = [source.id, source.firstAttempt];
    for (const { uid, sequence, value, grant, at } of this.#rows.scan(tx, {
      ...{ by: ["task_id", "life", "sequence"], equal, above: [after], below, limit, enough: { chars: bytes, of: ["value"] } },
    })) {
      parts.push({ uid, sequence, value, grant, at });
      bytes -= value.length;
      if (bytes <= 0) break;
    }
    return parts;
  }
}

/** A step that its run has forgotten has not started a new life yet. */
function hasLife(task: TaskRow | null): task is TaskRow {
  return task !== null && task.state !== "forgotten";
}

function notBegun(): PartPage {
  return { parts: [], ended: null };
}

function endOf({ state }: TaskRow): PartPage["ended"] {
  return isOpen(state) ? null : state;
}

function bytesOf({ uid, value }: NewPart): number {
  return rowBytes + Buffer.byteLength(uid) + Buffer.byteLength(value);
}

function tooMany(taskId: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `Task ${taskId} has ${taskPartsMax} parts, which is the limit: cut it into several steps.`);
}
