// Parts: what a task has produced before its end, kept once for each uid, in the order in which they first came. The port to a store.
//
// Parts belong to one life of their task: a later attempt continues with those of the one before, a step that its run starts again has
// none.

import type { Verdict } from "../../core/verdict.ts";
import type { EndState, Hold } from "../board/task.ts";

export interface Part {
  /** Chosen by the producer; the same uid again is the same part. */
  readonly uid: string;
  /** Counts from 1 within its task, without gaps. */
  readonly sequence: number;
  /** JSON text. */
  readonly value: string;
  /** The hand-out that gave this value. */
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
  /** What became of the task; null while it is open, and before it has begun. Looked at before the parts, so that none come after it. */
  readonly ended: EndState | null;
}

export interface PartStore {
  /**
   * Durable when it resolves. Fenced like an extend, and like one not applied to a task that is being cancelled. A uid that is there
   * already keeps its sequence; a later grant replaces its value. All or nothing for each call; calls that arrive together share a
   * commit. `again` when the hold is over but had put these very parts before.
   */
  put(hold: Hold, parts: readonly NewPart[]): Promise<Verdict>;
  /**
   * Which of these uids are not known to be kept under this hold: what is left out is durable and need not be put. Answered from memory, so
   * some that were put a while ago may be among them; under a hold that is over, all are.
   */
  unkept(hold: Hold, uids: readonly string[]): Promise<readonly string[]>;
  /**
   * Parts after a sequence, at most `limit` of them, and fewer where they are large: only a page without parts means that there are no
   * more.
   */
  read(taskId: string, after: number, limit: number): Promise<PartPage>;
  count(taskId: string): Promise<number>;
  /** Which of these uids the task has no part of. */
  absent(taskId: string, uids: readonly string[]): Promise<readonly string[]>;
  /**
   * A reader, itself a task, has finished with these parts of another: its later attempts are not given them again. Fenced by the
   * reader's hold like `put`. Uids that are not there are ignored.
   */
  finish(reader: Hold, source: string, uids: readonly string[]): Promise<Verdict>;
  /** As `read`, without what the reader has finished with. */
  unread(reader: string, source: string, after: number, limit: number): Promise<PartPage>;
  /** Called after each commit with new parts of the task, and when it ends. Must not throw. Ends with the function that is returned. */
  watch(taskId: string, changed: () => void): () => void;
}

/** Parts in one call: as many as take about 10 ms to write, so that no put holds up the others of its commit for long. */
export const putPartsMax = 1_000;
/** Text of the parts in one call, and about what a page holds: a commit of this size is still written without a noticeable pause. */
export const partBytesMax = 8 * 1_024 * 1_024;
/** Characters of a uid: it is written twice, and a hash or a path is far shorter. */
export const uidLengthMax = 512;
/** Parts of one page. */
export const pagePartsMax = 1_000;
/** Parts of one task: their uids take 32 MiB of memory while it is put to. A longer stream is better cut into several steps. */
export const taskPartsMax = 2_000_000;
