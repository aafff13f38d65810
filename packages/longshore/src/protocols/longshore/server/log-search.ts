// Reads a log from its end, and searches it. A page visits a bounded part of the log and reports its size, so that the caller can show the
// progress of a search, and end it.

import { inTurns, type Sliced } from "../../../core/slices/slice-work.ts";
import type { Slices } from "../../../core/slices/slices.ts";
import type { LogSource, LogStore, LogStream, StoredChunk } from "../../../engine/log/store.ts";

export interface LogFilter {
  /** From 0. */
  readonly attempt?: number | undefined;
  readonly stream?: LogStream | undefined;
  /** Only lines with this text; case-insensitive. */
  readonly text?: string | undefined;
}

interface EarlierQuery extends LogFilter {
  readonly before?: number | undefined;
  readonly limit: number;
}

export interface EarlierPage {
  /** In order of arrival. */
  readonly chunks: StoredChunk[];
  /** The `before` of the page before it; null at the beginning of the log. */
  readonly next: number | null;
  /** Characters that were visited. */
  readonly looked: number;
}

/** How many characters one page visits: some tens of milliseconds of work, in slices. */
const lookedMax = 4 * 1_048_576;
/** Chunks that are read at once. */
const readMax = 1_000;
/** Characters whose lines are compared in one turn of the event loop: about a millisecond. */
const pieceChars = 131_072;

interface SearchDeps {
  readonly logStore: LogStore;
  readonly slices: Slices;
}

export async function earlierLog({ logStore, slices }: SearchDeps, source: LogSource, query: EarlierQuery): Promise<EarlierPage> {
  const { limit, attempt, stream } = query;
  const isFiltered = attempt !== undefined || stream !== undefined || query.text !== undefined;
  const wanted = query.text?.toLowerCase();
  const found: StoredChunk[] = [];
  let { before } = query;
  for (let looked = 0; ; ) {
    const { chunks, next } = await logStore.before(source, before, isFiltered ? readMax : limit);
    for (const chunk of chunks.toReversed()) {
      looked += chunk.data.length;
      before = chunk.position;
      if ((attempt !== undefined && chunk.attempt !== attempt) || (stream !== undefined && chunk.stream !== stream)) continue;
      const data = wanted === undefined ? chunk.data : await inTurns(linesWith(chunk.data, wanted), slices);
      if (data === "" && wanted !== undefined) continue;
      found.push({ ...chunk, data });
      if (found.length === limit) return { chunks: found.reverse(), next: chunk === chunks[0] ? next : chunk.position, looked };
    }
    if (next === null) return { chunks: found.reverse(), next: null, looked };
    if (!isFiltered || looked >= lookedMax) return { chunks: found.reverse(), next, looked };
  }
}

/** The lines that contain the text, with their ends. A line that two chunks share is compared in two parts. */
function* linesWith(data: string, wanted: string): Sliced<string> {
  const found: string[] = [];
  for (let from = 0, piece = 0; from < data.length; ) {
    const end = data.indexOf("\n", from);
    const to = end < 0 ? data.length : end + 1;
    const line = data.slice(from, to);
    if (line.toLowerCase().includes(wanted)) found.push(line);
    if (to - piece >= pieceChars) {
      piece = to;
      yield;
    }
    from = to;
  }
  return found.join("");
}
