// The port of logs to a store. A pushed batch is one durable step; a repeated push is stored once.

export type LogStream = "stdout" | "stderr";

/** A piece of a task's log as its worker sent it: text of any length, with its line ends. */
export interface LogChunk {
  readonly stream: LogStream;
  /** The worker's own sequence number; not every worker sends one. */
  readonly sequence: number;
  readonly data: string;
  /** The worker's own time, in epoch milliseconds. */
  readonly at: number;
}

/** One push: chunks of one hand-out of one task. The caller has checked that the hand-out is known. */
export interface LogBatch {
  readonly taskId: string;
  readonly runId: string | null;
  readonly attempt: number;
  readonly grant: number;
  readonly chunks: readonly LogChunk[];
}

export interface StoredChunk extends LogChunk {
  /** The chunk's place in arrival order, over all tasks. Rises, is never used twice, and stays valid after a restart. */
  readonly position: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly grant: number;
}

/** The log of one task, or of all tasks of a run. */
export type LogSource = { readonly taskId: string } | { readonly runId: string };

export interface Appended {
  /** The number of new chunks that were stored. */
  stored: number;
  /** The number of chunks that an earlier push had stored. */
  repeated: number;
  /** The number of chunks that were dropped because the task's log, or the quota of all logs, is full. */
  dropped: number;
}

export interface EarlierChunks {
  readonly chunks: StoredChunk[];
  readonly next: number | null;
}

export interface LogStore {
  /**
   * Stores the new chunks of a batch. A chunk is known when the same hand-out pushed the same stream, sequence, data and time before; equal
   * chunks inside one batch are all kept. Rejects with LONGSHORE_LIMIT when the batch alone is too large.
   */
  append(batch: LogBatch): Promise<Appended>;
  /**
   * Returns a page of a task's chunks after a position: earlier attempts first, each in order of arrival. More may follow when `isFullPage`
   * is true.
   */
  read(taskId: string, page: { after?: number; limit: number }): Promise<StoredChunk[]>;
  /** Returns a page of a source's chunks after a position, in order of arrival. More may follow when `isFullPage` is true. */
  since(source: LogSource, after: number, limit: number): Promise<StoredChunk[]>;
  /**
   * Returns the last chunks of a source before a position, in order of arrival. `next` is the `before` of the page before this one; null when
   * there is none.
   */
  before(source: LogSource, before: number | undefined, limit: number): Promise<EarlierChunks>;
  /** The last line with text, from the newest attempt that wrote any. */
  lastLine(taskId: string): Promise<string | null>;
}

/** Maximum text of one page, because a thousand chunks together may have gigabytes. The last chunk of a page may exceed it. */
export const pageBytesMax = 1024 * 1024;

/** Whether more may follow a page that was read with this limit. */
export function isFullPage(page: readonly LogChunk[], limit: number): boolean {
  return page.length >= limit || page.reduce((sum, { data }) => sum + data.length, 0) >= pageBytesMax;
}

/**
 * Limits of one push. They are larger than any request body that the server reads. The chunks of one push fit into the positions of one
 * row.
 */
export const pushChunksMax = 10_000;
export const pushBytesMax = 8 * 1024 * 1024;
/** Default for the maximum size of one task's log, over all attempts: about two hundred thousand lines. */
export const taskLogBytesMax = 16 * 1024 * 1024;
/** Counted for each chunk in addition to its text, so that a flood of empty chunks is limited as well. */
export const chunkBytes = 64;
