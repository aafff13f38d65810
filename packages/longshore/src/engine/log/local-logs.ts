// Logs as rows: a pushed batch is one row, or several if it is large. They are written with the commit that all operations share.

import { LongshoreError } from "../../core/errors.ts";
import type { Slices } from "../../core/slices/slices.ts";
import type { Amount } from "../amounts.ts";
import { Additions } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type Once, unmarked } from "../request-marks.ts";
import type { RowStore } from "../rows.ts";
import type { Room, StoredBytes } from "../stored-bytes.ts";
import { type LogRow, logHeadTable, logTable, packed } from "../tables/log.ts";
import type { Tx } from "../tx.ts";
import { LogReads } from "./log-reads.ts";
import {
  type Appended,
  chunkBytes,
  type EarlierChunks,
  type LogBatch,
  type LogChunk,
  type LogSource,
  type LogStore,
  pushBytesMax,
  pushChunksMax,
  type StoredChunk,
  taskLogBytesMax,
} from "./store.ts";
import { freshOf, type StoredKeys, type Tail, Tails } from "./tails.ts";

export interface LocalLogsDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  stored: StoredBytes;
  /** Maximum size of one task's log, over all attempts. */
  taskBytesMax?: number;
  /** Limits what is read in one turn of the event loop. */
  slices?: Slices;
}

/** Maximum size of a row with several chunks. A row is parsed without a pause, about a millisecond for this size. */
const rowBytesMax = 262_144;
/** Maximum length of a chunk; a longer one is stored as several. A chunk is read and sent as a whole to each of its readers. */
const chunkCharsMax = 262_144;

export class LocalLogs implements LogStore {
  readonly #performed: Once;
  readonly #bytesMax: number;
  readonly #reads: LogReads;
  readonly #added: Additions<LogRow>;
  readonly #tails: Tails;
  readonly #room: Room;
  /** The highest id that a row has ever had, including removed rows: a position is never used again. */
  readonly #last: Amount;

  constructor({ store, commit, performed = unmarked(commit), stored, taskBytesMax = taskLogBytesMax, slices }: LocalLogsDeps) {
    this.#room = stored.of("logs");
    this.#last = stored.amounts.of("last log");
    this.#performed = performed;
    this.#bytesMax = taskBytesMax;
    const rows = store.table(logTable);
    const heads = store.table(logHeadTable);
    this.#reads = new LogReads({ rows, heads, read: (work) => commit.read(work), slices });
    this.#tails = new Tails(rows, heads);
    this.#added = new Additions(
      commit,
      (row) => rows.insert([row]),
      ({ bytes }) => bytes,
    );
  }

  append(batch: LogBatch): Promise<Appended> {
    const bytes = batch.chunks.reduce((sum, chunk) => sum + Buffer.byteLength(chunk.data), 0);
    if (batch.chunks.length > pushChunksMax)
      return Promise.reject(tooLarge(`${batch.chunks.length} chunks`, `at most ${pushChunksMax} chunks`));
    if (bytes > pushBytesMax) return Promise.reject(tooLarge(`${bytes} bytes of text`, `at most ${pushBytesMax} bytes`));
    if (batch.chunks.length === 0) return Promise.resolve({ stored: 0, repeated: 0, dropped: 0 });
    const isLong = batch.chunks.some(({ data }) => data.length > chunkCharsMax);
    const whole = isLong ? { ...batch, chunks: batch.chunks.flatMap(inPieces) } : batch;
    // A chunk without a sequence number is identified by the time of its arrival. When it arrives again, that time differs.
    return this.#performed.once(
      `log ${batch.taskId}`,
      (tx) => this.#appendNow(tx, whole),
      () => ({ stored: 0, repeated: whole.chunks.length, dropped: 0 }),
    );
  }

  read(taskId: string, page: { after?: number; limit: number }): Promise<StoredChunk[]> {
    return this.#reads.ofTask(taskId, page.after ?? 0, page.limit);
  }

  before(source: LogSource, before: number | undefined, limit: number): Promise<EarlierChunks> {
    return this.#reads.before(source, before, limit);
  }

  since(source: LogSource, after: number, limit: number): Promise<StoredChunk[]> {
    return this.#reads.since(source, after, limit);
  }

  lastLine(taskId: string): Promise<string | null> {
    return this.#reads.lastLine(taskId);
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
    // When the quota of all logs is full, later chunks may find room again: the log gets no mark.
    const full = appended.dropped > 0 && room <= this.#room.left;
    if (kept.length === 0 && !full) return appended;
    const chunks = full ? [...kept, fullMark(batch, this.#bytesMax)] : kept;
    // A size of one byte above the limit marks the log as full, also after the size was read back.
    this.#add(tx, batch, chunks, full ? room + 1 : bytes, { tail, stored, keys: keys.slice(0, kept.length) });
    return appended;
  }

  #add(tx: Tx, batch: LogBatch, chunks: readonly LogChunk[], bytes: number, end: { tail: Tail; stored: StoredKeys; keys: string[] }): void {
    const { taskId, runId, attempt, grant } = batch;
    let left = bytes;
    const rows = inRows(chunks);
    for (const [at, row] of rows.entries()) {
      const counted = at === rows.length - 1 ? left : row.bytes;
      left -= counted;
      this.#last.add(tx, 1);
      this.#added.add(tx, { id: this.#last.value, taskId, runId, attempt, grant, bytes: counted, chunks: packed(row.chunks) });
    }
    this.#room.add(tx, bytes);
    this.#tails.add(tx, end.tail, end.stored, end.keys, bytes);
  }
}

/** The same text always has the same pieces, so that a repeated push is recognised. */
function inPieces(chunk: LogChunk): LogChunk[] {
  const pieces: LogChunk[] = [];
  let from = 0;
  do {
    const to = pieceEnd(chunk.data, from + chunkCharsMax);
    pieces.push({ ...chunk, data: chunk.data.slice(from, to) });
    from = to;
  } while (from < chunk.data.length);
  return pieces;
}

/** Never splits a surrogate pair. */
function pieceEnd(text: string, at: number): number {
  const isHalf = at < text.length && /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(at - 1, at + 1));
  return isHalf ? at - 1 : at;
}

/** Splits the chunks of a push into rows: nearly every push fits into one row. */
function inRows(chunks: readonly LogChunk[]): { chunks: LogChunk[]; bytes: number }[] {
  const rows: { chunks: LogChunk[]; bytes: number }[] = [];
  for (const chunk of chunks) {
    const bytes = sizeOf(chunk);
    const last = rows.at(-1);
    if (last === undefined || last.bytes + bytes > rowBytesMax) rows.push({ chunks: [chunk], bytes });
    else {
      last.chunks.push(chunk);
      last.bytes += bytes;
    }
  }
  return rows;
}

function sizeOf({ data }: LogChunk): number {
  return chunkBytes + Buffer.byteLength(data);
}

function fitting(chunks: readonly LogChunk[], room: number): { kept: readonly LogChunk[]; bytes: number } {
  let bytes = 0;
  for (const [at, chunk] of chunks.entries()) {
    const size = sizeOf(chunk);
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

function tooLarge(got: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_LIMIT", `One push of logs brings ${got}; ${expected} are taken at once.`, {
    detail: { field: "chunks", expected },
  });
}
