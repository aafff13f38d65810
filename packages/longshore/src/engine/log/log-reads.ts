// Reading logs: pages of chunks, and the last line of a task. A row may have megabytes, and hundreds of readers may read at the same
// moment. So a read computes its cost from the heads of the rows, and waits for a turn of the event loop with room for it.

import { rowBytes, Slices, wholeRow } from "../../core/slices/slices.ts";
import type { Enough, Scan, TableRows } from "../rows.ts";
import { type LogHead, type LogRow, unpacked } from "../tables/log.ts";
import type { ReadRows } from "../tx.ts";
import { type EarlierChunks, type LogChunk, type LogSource, pageBytesMax, type StoredChunk } from "./store.ts";

export interface LogReadsDeps {
  readonly rows: TableRows<LogRow>;
  readonly heads: TableRows<LogHead>;
  readonly read: ReadRows;
  readonly slices?: Slices;
}

/** A position is the row's id times this factor, plus the chunk's place in its row. This leaves room for 500,000,000,000 batches. */
const placesMax = 16_384;
/** The search for the last line reads at most this many of the newest rows, and this many bytes. Nearly always the first row has a line. */
const lastRows = 8;
const lastBytesMax = 262_144;

/** A page, and a row before it that was already returned. */
const enough: Enough = { chars: 2 * pageBytesMax, of: ["chunks"] };

export class LogReads {
  readonly #rows: TableRows<LogRow>;
  readonly #heads: TableRows<LogHead>;
  readonly #read: ReadRows;
  readonly #slices: Slices;

  constructor({ rows, heads, read, slices = new Slices() }: LogReadsDeps) {
    this.#rows = rows;
    this.#heads = heads;
    this.#read = read;
    this.#slices = slices;
  }

  /** Returns a task's chunks, earlier attempts first. */
  async ofTask(taskId: string, after: number, limit: number): Promise<StoredChunk[]> {
    const from = rowOf(after);
    const attempt = from === 0 ? -1 : await this.#read((tx) => this.#heads.get(tx, from)?.attempt ?? -1);
    return this.#page({ by: ["task_id", "attempt", "id"], equal: [taskId], above: [attempt, from - 1] }, after, limit);
  }

  /** Returns a source's chunks in order of arrival. */
  since(source: LogSource, after: number, limit: number): Promise<StoredChunk[]> {
    const above = [rowOf(after) - 1];
    const scan: Scan =
      "taskId" in source
        ? { by: ["task_id", "id"], equal: [source.taskId], above, keysFirst: true }
        : { by: ["run_id", "id"], equal: [source.runId], above };
    return this.#page(scan, after, limit);
  }

  /** Returns the last chunks before a position, in order of arrival. */
  async before(source: LogSource, before: number | undefined, limit: number): Promise<EarlierChunks> {
    const [column, id] = "taskId" in source ? ["task_id", source.taskId] : ["run_id", source.runId];
    // A row whose first chunk is the position has nothing before it.
    const below = before === undefined ? undefined : [Math.ceil(before / placesMax)];
    const scan: Scan = { by: [column, "id"], equal: [id], below, backwards: true, limit: limit + 1 };
    await this.#slices.turn(wholeRow);
    const heads = await this.#read((tx) => untilMore(this.#heads.scan(tx, scan), pageBytesMax));
    if (heads.length === 0) return { chunks: [], next: null };
    await this.#slices.turn(costOf(heads));
    const found = await this.#read((tx) =>
      collectBack(this.#rows.scan(tx, { ...scan, enough }), before ?? Number.POSITIVE_INFINITY, limit),
    );
    // When no limit has cut the page, nothing is before it.
    const isAll = heads.length <= limit && heads.reduce((sum, { bytes }) => sum + bytes, 0) < pageBytesMax && !found.isCut;
    return { chunks: found.chunks, next: isAll ? null : (found.chunks[0]?.position ?? null) };
  }

  /** Null also when the newest rows are too large to search. */
  async lastLine(taskId: string): Promise<string | null> {
    const scan: Scan = { by: ["task_id", "attempt", "id"], equal: [taskId], backwards: true, limit: lastRows };
    await this.#slices.turn(wholeRow);
    const heads = await this.#read((tx) => within(this.#heads.scan(tx, scan), lastBytesMax));
    if (heads.length === 0) return null;
    await this.#slices.turn(costOf(heads));
    return this.#read((tx) => {
      for (const row of this.#rows.scan(tx, { ...scan, limit: heads.length })) {
        const line = lastLineOf(unpacked(row.chunks));
        if (line !== null) return line;
      }
      return null;
    });
  }

  async #page(rows: Scan, after: number, limit: number): Promise<StoredChunk[]> {
    // A row has at least one chunk, and the first row may already have been returned.
    const scan = { ...rows, limit: limit + 1 };
    await this.#slices.turn(wholeRow);
    const heads = await this.#read((tx) => untilMore(this.#heads.scan(tx, scan), pageBytesMax));
    if (heads.length === 0) return [];
    await this.#slices.turn(costOf(heads));
    return this.#read((tx) => collect(this.#rows.scan(tx, { ...scan, enough }), after, limit));
  }
}

/** The cost of parsing these rows. */
function costOf(heads: readonly LogHead[]): number {
  return heads.reduce((cost, { bytes }) => cost + wholeRow + Math.floor(bytes / rowBytes), 0);
}

/** The first rows that together have at most `bytesMax` bytes. */
function within(heads: Iterable<LogHead>, bytesMax: number): LogHead[] {
  const found: LogHead[] = [];
  let bytes = 0;
  for (const head of heads) {
    bytes += head.bytes;
    if (bytes > bytesMax) return found;
    found.push(head);
  }
  return found;
}

/** The first rows up to `bytesMax` bytes, including the one that exceeds it. */
function untilMore(heads: Iterable<LogHead>, bytesMax: number): LogHead[] {
  const found: LogHead[] = [];
  let bytes = 0;
  for (const head of heads) {
    found.push(head);
    bytes += head.bytes;
    if (bytes >= bytesMax) return found;
  }
  return found;
}

function collect(rows: Iterable<LogRow>, after: number, limit: number): StoredChunk[] {
  const found: StoredChunk[] = [];
  let bytes = 0;
  for (const row of rows) {
    const base = { taskId: row.taskId, attempt: row.attempt, grant: row.grant };
    for (const [place, chunk] of unpacked(row.chunks).entries()) {
      const position = row.id * placesMax + place;
      // Only the row of the position can contain chunks that were already returned.
      if (rowOf(after) === row.id && position <= after) continue;
      if (found.length === limit || bytes >= pageBytesMax) return found;
      found.push({ position, ...base, ...chunk });
      bytes += chunk.data.length;
    }
    if (found.length === limit || bytes >= pageBytesMax) return found;
  }
  return found;
}

/** `rows` are the newest first. `isCut`: there are more chunks in these rows. */
function collectBack(rows: Iterable<LogRow>, before: number, limit: number): { chunks: StoredChunk[]; isCut: boolean } {
  const found: StoredChunk[] = [];
  let bytes = 0;
  for (const row of rows) {
    const base = { taskId: row.taskId, attempt: row.attempt, grant: row.grant };
    for (const [place, chunk] of [...unpacked(row.chunks).entries()].reverse()) {
      const position = row.id * placesMax + place;
      if (position >= before) continue;
      if (found.length === limit || bytes >= pageBytesMax) return { chunks: found.reverse(), isCut: true };
      found.push({ position, ...base, ...chunk });
      bytes += chunk.data.length;
    }
  }
  return { chunks: found.reverse(), isCut: false };
}

function rowOf(position: number): number {
  return Math.floor(position / placesMax);
}

/** A frame of a stack. */
const frame = /^\s+at \S/;

/** A chunk that ends with a stack frame is left out: its error is already shown beside the last line. */
function lastLineOf(chunks: readonly LogChunk[]): string | null {
  for (const { data } of chunks.toReversed()) {
    const text = data.trimEnd();
    const line = text.slice(Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1);
    if (line !== "" && !frame.test(line)) return line;
  }
  return null;
}
