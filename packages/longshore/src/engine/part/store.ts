// The port of parts to a store. Parts are what a task produces before its end, stored once for each uid, in the order in which they first
// arrived.
//
// Parts belong to one life of their task. A later attempt keeps the parts of earlier ones; a step that its run starts again has none.

import type { Verdict } from "../../core/verdict.ts";
import type { EndState, Hold, TaskRow } from "../board/task.ts";

export interface Part {
  /** Chosen by the producer; the same uid identifies the same part. */
  readonly uid: string;
  /** Counts from 1 within its task, without gaps. */
  readonly sequence: number;
  /** JSON text. */
  readonly value: string;
  /** The hand-out that put this value. */
  readonly grant: number;
  readonly at: number;
}

export interface NewPart {
  readonly uid: string;
  /** JSON text. */
  readonly value: string;
}

export interface PartPage {
  /** Oldest first. */
  readonly parts: Part[];
  /** The end state of the task; null while it is open, and before it has started. Read before the parts, so that no parts follow it. */
  readonly ended: EndState | null;
}

/** One life of a task, with the number of its first attempt. */
export type TaskLife = Pick<TaskRow, "id" | "firstAttempt">;

/** A part without its uid and value. */
export type PartTime = Pick<Part, "sequence" | "at">;

/** How far a reader is in the parts of a source. */
export interface ReadProgress {
  /** The number of parts that it has finished with. */
  readonly read: number;
  /** False when there are so many stretches that only the first of them were counted. */
  readonly isWhole: boolean;
  /** The first part that it has not finished with; null when there is none. */
  readonly oldest: PartTime | null;
}

export interface PartStore {
  /**
   * Durable when the promise resolves. It is fenced like an extend, and also refused when the task is being cancelled. An existing uid
   * keeps its sequence; a later grant replaces its value. Each call is applied completely or not at all; calls that arrive together share a
   * commit. Returns `again` when the hold has ended but had put exactly these parts before.
   */
  put(hold: Hold, parts: readonly NewPart[]): Promise<Verdict>;
  /**
   * Returns the uids that are not known to be stored under this hold. The others are durable and need not be put. Only memory is searched,
   * so the result may contain uids that were put some time ago. For a hold that has ended, it contains all uids.
   */
  unkept(hold: Hold, uids: readonly string[]): Promise<readonly string[]>;
  /** Returns at most `limit` parts after a sequence, and fewer when they are large. So only an empty page means that there are no more. */
  read(taskId: string, after: number, limit: number): Promise<PartPage>;
  count(taskId: string): Promise<number>;
  /** Returns the newest part of each task; null for a task without parts. */
  newest(tasks: readonly TaskLife[]): Promise<readonly (PartTime | null)[]>;
  /** Returns the progress of each reader in the parts of its source; null for a reader that has finished with none of them. */
  progress(pairs: readonly { readonly reader: TaskLife; readonly source: TaskLife }[]): Promise<readonly (ReadProgress | null)[]>;
  /** Returns the uids of which the task has no part. */
  absent(taskId: string, uids: readonly string[]): Promise<readonly string[]>;
  /**
   * A reader, which is also a task, has finished with these parts of another task: its later attempts do not receive them again. Fenced by
   * the reader's hold like `put`. Unknown uids are ignored.
   */
  finish(reader: Hold, source: string, uids: readonly string[]): Promise<Verdict>;
  /** Like `read`, but without the parts that the reader has finished with. */
  unread(reader: string, source: string, after: number, limit: number): Promise<PartPage>;
  /**
   * Calls `changed` after each commit with new parts of the task, and when the task ends. `changed` must not throw. The returned function
   * ends the watch.
   */
  watch(taskId: string, changed: () => void): () => void;
}

/** Maximum number of parts in one call: they take about 10 ms to write, and delay the others of its commit. */
export const putPartsMax = 1_000;
/**
 * Maximum text of the parts in one call, and about the size of a page: a commit of this size is still written without a noticeable pause.
 */
export const partBytesMax = 8 * 1_024 * 1_024;
/** Maximum length of a uid: it is written twice, and a hash or a path is far shorter. */
export const uidLengthMax = 512;
/** Maximum number of parts in one page. */
export const pagePartsMax = 1_000;
/**
 * Maximum number of parts of one task: their uids take 32 MiB of memory while the task puts parts. Split a longer stream into several
 * steps.
 */
export const taskPartsMax = 2_000_000;
