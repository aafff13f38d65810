// Logs as rows: one row for each pushed batch, written with the commit that all operations share.

import { LongshoreError } from "../../errors.ts";
import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore, Scan, TableRows, Value } from "../rows.ts";
import type { Room, StoredBytes } from "../stored-bytes.ts";
import { type LogHead, type LogRow, logHeadTable, logTable, packed, unpacked } from "../tables/log.ts";
import type { Tx } from "../tx.ts";
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
import { freshOf, type StoredKeys, type Tail, Tails } from "./tails.ts";

export interface LocalLogsDeps {
  store: RowStore;
  commit: GroupCommit;
  stored: StoredBytes;
  /** What is kept of one task's log, over all attempts. */
  taskBytesMax?: number;
}

/** A position is the row's id times this, plus the chunk's place in its row. Leaves room for 500 thousand million batches. */
const placesMax = 16_384;
/** Rows that are read at once to find the last line: nearly always the first has one. */
const lastRows = 8;

export class LocalLogs implements LogStore {
  readonly #commit: GroupCommit;
  readonly #bytesMax: number;
  readonly #rows: TableRows<LogRow>;
  readonly #heads: TableRows<LogHead>;
  readonly #added: Additions<LogRow>;
  readonly #tails: Tails;
  readonly #room: Room;
  /** Null until it is read, by the first operation. */
  #lastId: number | null = null;

  constructor({ store, commit, stored, taskBytesMax = taskLogBytesMax }: LocalLogsDeps) {
    this.#room = stored.of("logs");
    this.#commit = commit;
    this.#bytesMax = taskBytesMax;
    const rows = store.table(logTable);
    this.#rows = rows;
    this.#heads = store.table(logHeadTable);
    this.#tails = new Tails(rows, this.#heads);
    this.#added = new Additions(
      commit,
      (row) => rows.insert(row),
      ({ bytes }) => bytes,
    );
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
    return this.#commit.read(() => {
      const attempt = from === 0 ? -1 : (this.#heads.get(from)?.attempt ?? -1);
      // A row has at least one chunk, and the first row may have been given already.
      const limit = page.limit + 1;
      const rows = this.#rows.scan({ by: ["task_id", "attempt", "id"], equal: [taskId], above: [attempt, from - 1], limit });
      return collect(rows, after, page.limit);
    });
  }

  since(source: LogSource, after: number, limit: number): Promise<StoredChunk[]> {
    const behind = { above: [rowOf(after) - 1], limit: limit + 1 };
    const scan: Scan =
      "taskId" in source
        ? { by: ["task_id", "id"], equal: [source.taskId], ...behind, keysFirst: true }
        : { by: ["run_id", "id"], equal: [source.runId], ...behind };
    return this.#commit.read(() => collect(this.#rows.scan(scan), after, limit));
  }

  lastLine(taskId: string): Promise<string | null> {
    return this.#commit.read(() => {
      for (let below: Value[] | undefined; ; ) {
        const by = ["task_id", "attempt", "id"];
        const page = [...this.#rows.scan({ by, equal: [taskId], below, backwards: true, limit: lastRows })];
        for (const row of page) {
          const line = lastLineOf(unpacked(row.chunks));
          if (line !== null) return line;
        }
        const last = page.at(-1);
        if (last === undefined || page.length < lastRows) return null;
        below = [last.attempt, last.id];
      }
    });
  }

  #appendNow(tx: Tx, batch: LogBatch): Appended {
    const tail = this.#tails.of(tx, batch.taskId);
    const stored = this.#tails.keys(tx, tail, batch);
    const { fresh, keys } = freshOf(batch.chunks, stored);
    const appended: Appended = { stored: fresh.length, repeated: batch.chunks.length - fresh.length, dropped: 0 };
    const room = this.#bytesMax - tail.bytes;
    // A full log has a mark as its last chunk.
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
    this.#add(tx, batch, chunks, full ? room + 1 : bytes, { tail, stored, keys: keys.slice(0, kept.length) });
    return appended;
  }

  #add(tx: Tx, batch: LogBatch, chunks: readonly LogChunk[], bytes: number, end: { tail: Tail; stored: StoredKeys; keys: string[] }): void {
    const { taskId, runId, attempt, grant } = batch;
    this.#lastId ??= this.#rows.last();
    const id = ++this.#lastId;
    this.#added.add(tx, { id, taskId, runId, attempt, grant, bytes, chunks: packed(chunks) });
    this.#room.add(tx, bytes);
    this.#tails.add(tx, end.tail, end.stored, end.keys, bytes);
  }
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

function collect(rows: Iterable<LogRow>, after: number, limit: number): StoredChunk[] {
  const found: StoredChunk[] = [];
  let bytes = 0;
  for (const row of rows) {
    const base = { taskId: row.taskId, attempt: row.attempt, grant: row.grant };
    for (const [place, chunk] of unpacked(row.chunks).entries()) {
      const position = row.id * placesMax + place;
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

function tooLarge(got: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `One push of logs brings ${got}; ${expected} are taken at once.`, {
    detail: { field: "chunks", expected },
  });
}
