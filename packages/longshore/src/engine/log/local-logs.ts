// Logs on SQLite: one row per pushed batch, written with the shared group commit.
//
// A resend is recognised by the chunks of the same hand-out that were stored before. Those are remembered for tasks that push; for a
// task that has been quiet for long, or after a restart, they are read back from its rows. Only the newest are compared: a worker
// resends what was not acknowledged, never its whole log.

import { hash } from "node:crypto";
import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import {
  type Appended,
  chunkBytes,
  type LogBatch,
  type LogChunk,
  type LogSource,
  type LogStore,
  pageBytesMax,
  pushBytesMax,
  pushChunksMax,
  type StoredChunk,
  taskLogBytesMax,
} from "./store.ts";
import type { Room, StoredBytes } from "../stored-bytes.ts";
import type { Tx } from "../tx.ts";
import { LongshoreError } from "../../errors.ts";
import type { Database, SqlRow } from "../../store/sqlite/driver.ts";

export interface LocalLogsDeps {
  db: Database;
  commit: GroupCommit;
  stored: StoredBytes;
  /** What is kept of one task's log, over all attempts. */
  taskBytesMax?: number;
}

/** A position is the row's id times this, plus the chunk's place in its row. Leaves room for 500 thousand million batches. */
const placesMax = 16_384;
/** Chunks of one hand-out that a resend is compared with: twice the largest push, so that a whole push is always recognised. */
const comparedMax = 2 * pushChunksMax;
/** Tasks whose newest chunks are remembered, and chunks over all of them: about 30 MB at most. */
const tasksKeptMax = 5_000;
const chunksKeptMax = 200_000;

interface Row {
  id: number;
  batch: LogBatch;
  chunks: readonly LogChunk[];
  bytes: number;
}

/** What is known about a task's log: how much there is, and how often each of the newest chunks of a hand-out was stored. */
interface Tail {
  bytes: number;
  readonly grants: Map<number, Map<string, number>>;
}

export class LocalLogs implements LogStore {
  readonly #commit: GroupCommit;
  readonly #bytesMax: number;
  readonly #rows: Additions<Row>;
  readonly #tails = new Map<string, Tail>();
  readonly #load: { bytes: (taskId: string) => number; grant: (taskId: string, attempt: number, grant: number) => Map<string, number> };
  readonly #reads: ReturnType<typeof prepareReads>;
  readonly #room: Room;
  #lastId: number;
  #chunksKept = 0;

  constructor({ db, commit, stored, taskBytesMax = taskLogBytesMax }: LocalLogsDeps) {
    this.#room = stored.of("logs");
    this.#commit = commit;
    this.#bytesMax = taskBytesMax;
    const insert = db.prepare("INSERT INTO log (id, task_id, run_id, attempt, grant_count, bytes, chunks) VALUES (?, ?, ?, ?, ?, ?, ?)");
    this.#rows = new Additions(
      commit,
      ({ id, batch, chunks, bytes }) => {
        insert.run(id, batch.taskId, batch.runId, batch.attempt, batch.grant, bytes, packed(chunks));
      },
      ({ bytes }) => bytes,
    );
    this.#load = prepareLoads(db);
    this.#reads = prepareReads(db);
    this.#lastId = Number(db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'log'").get()?.seq ?? 0);
  }

  append(batch: LogBatch): Promise<Appended> {
    const bytes = batch.chunks.reduce((sum, chunk) => sum + Buffer.byteLength(chunk.data), 0);
    if (batch.chunks.length > pushChunksMax)
      return Promise.reject(tooLarge(`${batch.chunks.length} chunks`, `at most ${pushChunksMax} chunks`));
    if (bytes > pushBytesMax) return Promise.reject(tooLarge(`${bytes} bytes of text`, `at most ${pushBytesMax} bytes`));
    if (batch.chunks.length === 0) return Promise.resolve({ stored: 0, repeated: 0, dropped: 0 });
    return this.#commit.run((tx) => this.#appendNow(tx, batch));
  }

  read(taskId: string, page: { after?: number; limit: number }): Promise<StoredChunk[]> {
    const after = page.after ?? 0;
    const from = rowOf(after);
    const attempt = from === 0 ? -1 : (this.#reads.attemptOf(from) ?? -1);
    return Promise.resolve(collect(this.#reads.byAttempt(taskId, attempt, from), after, page.limit));
  }

  since(source: LogSource, after: number, limit: number): Promise<StoredChunk[]> {
    // A row holds at least one chunk, and the first may have been given already.
    const rows =
      "taskId" in source
        ? this.#reads.byTask(source.taskId, rowOf(after), limit + 1)
        : this.#reads.byRun(source.runId, rowOf(after), limit + 1);
    return Promise.resolve(collect(rows, after, limit));
  }

  lastLine(taskId: string): Promise<string | null> {
    return Promise.resolve(this.#reads.lastLine(taskId));
  }

  #appendNow(tx: Tx, batch: LogBatch): Appended {
    const tail = this.#tail(batch.taskId);
    const known = this.#grant(tail, batch);
    const { fresh, keys } = freshOf(batch.chunks, known);
    const appended: Appended = { stored: fresh.length, repeated: batch.chunks.length - fresh.length, dropped: 0 };
    const room = this.#bytesMax - tail.bytes;
    // The last chunk of a full log is the mark that it is full.
    if (fresh.length === 0 || room < 0) return { ...appended, stored: 0, dropped: fresh.length };
    const { kept, bytes } = fitting(fresh, Math.min(room, this.#room.left));
    appended.dropped = fresh.length - kept.length;
    appended.stored = kept.length;
    if (appended.dropped > 0 && this.#room.left < room) this.#room.refused++;
    // When the logs of all tasks are full, what follows may find room again: the log is kept without a mark.
    const full = appended.dropped > 0 && room <= this.#room.left;
    if (kept.length === 0 && !full) return appended;
    const chunks = full ? [...kept, fullMark(batch, this.#bytesMax)] : kept;
    // One byte above the limit marks the log as full, also when it is read back.
    this.#store(tx, { id: ++this.#lastId, batch, chunks, bytes: full ? room + 1 : bytes }, tail);
    this.#remember(tx, known, keys.slice(0, kept.length));
    tx.after(() => this.#forgetQuiet());
    return appended;
  }

  #store(tx: Tx, row: Row, tail: Tail): void {
    this.#rows.add(tx, row);
    this.#room.add(tx, row.bytes);
    tail.bytes += row.bytes;
    tx.undo(() => {
      tail.bytes -= row.bytes;
    });
  }

  #remember(tx: Tx, known: Map<string, number>, keys: readonly string[]): void {
    const before = known.size;
    for (const key of keys) known.set(key, (known.get(key) ?? 0) + 1);
    forgetOldest(known, comparedMax);
    this.#chunksKept += known.size - before;
    tx.undo(() => {
      const size = known.size;
      for (const key of keys) {
        const count = (known.get(key) ?? 0) - 1;
        if (count > 0) known.set(key, count);
        else known.delete(key);
      }
      this.#chunksKept += known.size - size;
    });
  }

  #tail(taskId: string): Tail {
    const tail = this.#tails.get(taskId) ?? { bytes: this.#load.bytes(taskId), grants: new Map() };
    // Moved to the end: those at the front have been quiet for longest.
    this.#tails.delete(taskId);
    this.#tails.set(taskId, tail);
    return tail;
  }

  #grant(tail: Tail, batch: LogBatch): Map<string, number> {
    const remembered = tail.grants.get(batch.grant);
    if (remembered !== undefined) return remembered;
    const known = this.#load.grant(batch.taskId, batch.attempt, batch.grant);
    tail.grants.set(batch.grant, known);
    this.#chunksKept += known.size;
    return known;
  }

  /** Only between batches: what a batch has not written yet could not be read back. */
  #forgetQuiet(): void {
    for (const [taskId, tail] of this.#tails) {
      if (this.#tails.size <= tasksKeptMax && this.#chunksKept <= chunksKeptMax) return;
      for (const known of tail.grants.values()) this.#chunksKept -= known.size;
      this.#tails.delete(taskId);
    }
  }
}

function prepareLoads(db: Database) {
  const bytes = db.prepare("SELECT sum(bytes) AS bytes FROM log WHERE task_id = ?");
  const newest = db.prepare("SELECT chunks FROM log WHERE task_id = ? AND attempt = ? AND grant_count = ? ORDER BY id DESC");
  return {
    bytes: (taskId: string) => Number(bytes.get(taskId)?.bytes ?? 0),
    grant(taskId: string, attempt: number, grant: number): Map<string, number> {
      const known = new Map<string, number>();
      for (const row of newest.iterate(taskId, attempt, grant)) {
        for (const chunk of unpacked(row.chunks as string)) known.set(keyOf(chunk), (known.get(keyOf(chunk)) ?? 0) + 1);
        if (known.size >= comparedMax) break;
      }
      // Read newest first, but the oldest are to be forgotten first.
      return new Map([...known].reverse());
    },
  };
}

function prepareReads(db: Database) {
  const columns = "id, task_id, attempt, grant_count, chunks";
  const attempt = db.prepare("SELECT attempt FROM log WHERE id = ?");
  const byAttempt = db.prepare(`SELECT ${columns} FROM log WHERE task_id = ? AND (attempt, id) >= (?, ?) ORDER BY attempt, id`);
  // The ids are found in the index alone and sorted before any text is read.
  const byTask = db.prepare(
    `SELECT ${columns} FROM log WHERE id IN (SELECT id FROM log WHERE task_id = ? AND id >= ? ORDER BY id LIMIT ?) ORDER BY id`,
  );
  const byRun = db.prepare(`SELECT ${columns} FROM log WHERE run_id = ? AND id >= ? ORDER BY id LIMIT ?`);
  const newest = db.prepare("SELECT chunks FROM log WHERE task_id = ? ORDER BY attempt DESC, id DESC");
  return {
    attemptOf: (id: number) => attempt.get(id)?.attempt as number | undefined,
    byAttempt: (taskId: string, from: number, id: number) => byAttempt.iterate(taskId, from, id),
    byTask: (taskId: string, id: number, rows: number) => byTask.iterate(taskId, id, rows),
    byRun: (runId: string, id: number, rows: number) => byRun.iterate(runId, id, rows),
    lastLine(taskId: string): string | null {
      for (const row of newest.iterate(taskId)) {
        const line = lastLineOf(unpacked(row.chunks as string));
        if (line !== null) return line;
      }
      return null;
    },
  };
}

/** The chunks that no earlier push has stored, with their keys. The n-th of equal chunks in one batch is new unless n were stored. */
function freshOf(chunks: readonly LogChunk[], known: ReadonlyMap<string, number>): { fresh: LogChunk[]; keys: string[] } {
  const fresh: LogChunk[] = [];
  const keys: string[] = [];
  const seen = new Map<string, number>();
  for (const chunk of chunks) {
    const key = keyOf(chunk);
    const count = (seen.get(key) ?? 0) + 1;
    seen.set(key, count);
    if (count <= (known.get(key) ?? 0)) continue;
    fresh.push(chunk);
    keys.push(key);
  }
  return { fresh, keys };
}

function fitting(chunks: readonly LogChunk[], room: number): { kept: readonly LogChunk[]; bytes: number } {
  let bytes = 0;
  for (const [at, chunk] of chunks.entries()) {
    const size = chunkBytes + Buffer.byteLength(chunk.data);
    if (bytes + size > room) return { kept: chunks.slice(0, at), bytes };
    bytes += size;
  }
  return { kept: chunks, bytes };
}

function fullMark(batch: LogBatch, bytesMax: number): LogChunk {
  const last = batch.chunks[batch.chunks.length - 1] as LogChunk;
  const data = `[longshore] The log of this task has reached its limit of ${bytesMax} bytes; what follows is not kept.\n`;
  return { stream: "stderr", sequence: last.sequence, data, at: last.at };
}

function collect(rows: Iterable<SqlRow>, after: number, limit: number): StoredChunk[] {
  const found: StoredChunk[] = [];
  let bytes = 0;
  for (const row of rows) {
    const base = { taskId: row.task_id as string, attempt: row.attempt as number, grant: row.grant_count as number };
    for (const [place, chunk] of unpacked(row.chunks as string).entries()) {
      const position = (row.id as number) * placesMax + place;
      // Only the row that the position points into can hold chunks that were given already.
      if (rowOf(after) === row.id && position <= after) continue;
      if (found.length === limit || bytes >= pageBytesMax) return found;
      found.push({ position, ...base, ...chunk });
      bytes += chunk.data.length;
    }
    if (found.length === limit || bytes >= pageBytesMax) return found;
  }
  return found;
}

function rowOf(position: number): number {
  return Math.floor(position / placesMax);
}

function keyOf(chunk: LogChunk): string {
  return `${chunk.stream} ${chunk.sequence} ${chunk.at} ${hash("sha256", chunk.data, "base64")}`;
}

/** JSON escapes the NUL that SQLite would cut a text at. */
function packed(chunks: readonly LogChunk[]): string {
  return JSON.stringify(chunks.map((chunk) => [chunk.stream === "stdout" ? 1 : 2, chunk.sequence, chunk.at, chunk.data]));
}

function unpacked(text: string): LogChunk[] {
  const chunks = JSON.parse(text) as [number, number, number, string][];
  return chunks.map(([stream, sequence, at, data]) => ({ stream: stream === 1 ? "stdout" : "stderr", sequence, data, at }));
}

function lastLineOf(chunks: readonly LogChunk[]): string | null {
  for (const chunk of chunks.toReversed()) {
    const line = chunk.data
      .trimEnd()
      .split(/\r\n|\r|\n/)
      .at(-1)
      ?.trimEnd();
    if (line) return line;
  }
  return null;
}

function forgetOldest(known: Map<string, number>, max: number): void {
  for (const key of known.keys()) {
    if (known.size <= max) return;
    known.delete(key);
  }
}

function tooLarge(got: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `One push of logs brings ${got}; ${expected} are taken at once.`, {
    detail: { field: "chunks", expected },
  });
}
