// The port of logs to a store. A pushed batch is one durable step; a batch that is pushed again is stored once.

export type LogStream = "stdout" | "stderr";

/** A piece of a task's log as its worker sent it: text of any length, with its line ends. */
export interface LogChunk {
  readonly stream: LogStream;
  /** The worker's own count; not every worker counts. */
  readonly sequence: number;
  readonly data: string;
  /** The worker's own time, in epoch milliseconds. */
  readonly at: number;
}

/** One push: chunks of one hand-out of one task. The caller checks before that the hand-out is known. */
export interface LogBatch {
  readonly taskId: string;
  readonly runId: string | null;
  readonly attempt: number;
  readonly grant: number;
  readonly chunks: readonly LogChunk[];
}

export interface StoredChunk extends LogChunk {
  /** Its place in arrival order, over all tasks. Rises, is never used twice, and can be resumed from after a restart. */
  readonly position: number;
  readonly taskId: string;
  readonly attempt: number;
  readonly grant: number;
}

/** Whose log: one task's, or that of all tasks of a run. */
export type LogSource = { readonly taskId: string } | { readonly runId: string };

export interface Appended {
  /** How many chunks were new and are stored now. */
  stored: number;
  /** How many had been stored by an earlier push. */
  repeated: number;
  /** How many were thrown away because the task's log is full. */
  dropped: number;
}

export interface LogStore {
  /**
   * Stores what is new of a batch. A chunk is known when the same hand-out pushed the same stream, sequence, data and time before;
   * equal chunks inside one batch are all kept. Rejects with LONGSHORE_LIMIT when the batch alone is too large.
   */
  append(batch: LogBatch): Promise<Appended>;
  /** A task's chunks after a position, earlier attempts first, each in order of arrival: a page, and behind one that `isFullPage` another. */
  read(taskId: string, page: { after?: number; limit: number }): Promise<StoredChunk[]>;
  /** The chunks of a source after a position, in order of arrival: what a follower has not seen yet. A page in the same way. */
  since(source: LogSource, after: number, limit: number): Promise<StoredChunk[]>;
  /** The last line with text in it, of the newest attempt that wrote any. */
  lastLine(taskId: string): Promise<string | null>;
}

/** Text of one page, and what its last chunk has above it: a thousand chunks may have gigabytes together. */
export const pageBytesMax = 1024 * 1024;

/** Whether more may follow a page that was read with this limit. */
export function isFullPage(page: readonly LogChunk[], limit: number): boolean {
  return page.length >= limit || page.reduce((sum, { data }) => sum + data.length, 0) >= pageBytesMax;
}

/** What one push may bring. Larger than any request body that the server reads, and room enough below the positions of one row. */
export const pushChunksMax = 10_000;
export const pushBytesMax = 8 * 1024 * 1024;
/** What is kept of one task's log by default, over all attempts: about two hundred thousand lines. */
export const taskLogBytesMax = 16 * 1024 * 1024;
/** Counted for each chunk besides its text, so that a flood of empty chunks is bounded as well. */
export const chunkBytes = 64;
