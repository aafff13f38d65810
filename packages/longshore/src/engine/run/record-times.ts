// The fields of records that the graph and the timeline of a run show: names, states and times, without texts.

import type { Lane, TaskState, Verb } from "../board/task.ts";

/** The record of a step, with its current attempt. */
export interface RecordTimes {
  readonly id: string;
  readonly node: number;
  readonly step: string;
  readonly state: TaskState;
  readonly lane: Lane | null;
  readonly signal: string | null;
  /** See `TaskRow`. */
  readonly command: string | null;
  readonly ordinal: number;
  /** The first attempt of the current life. */
  readonly firstAttempt: number;
  readonly attempt: number;
  readonly deferrals: number;
  readonly holder: string | null;
  readonly queuedAt: number;
  readonly dueAt: number;
  readonly startedAt: number | null;
  readonly claimedAt: number | null;
  readonly endedAt: number | null;
  readonly closedBy: Verb | null;
}

/** An earlier attempt, or an earlier hold of an attempt that was deferred. */
export type AttemptTimes = Pick<
  RecordTimes,
  "attempt" | "holder" | "queuedAt" | "dueAt" | "startedAt" | "claimedAt" | "endedAt" | "closedBy"
> & { readonly grant: number };

export interface TimedRecord {
  readonly record: RecordTimes;
  /** Oldest first. */
  readonly earlier: readonly AttemptTimes[];
}

/** Reads records of runs for display. */
export interface RecordReader {
  /** All records of the run, in the order of their nodes. */
  records(runId: string): Promise<RecordTimes[]>;
  /**
   * Records of the run with their attempts, behind the record of the node `after`. They are in the order of their ids, which is not the
   * order of the nodes. `limit` counts attempts; the last record may exceed it. `next` is the `after` of the following page; null at the
   * end.
   */
  timed(runId: string, page: { readonly after?: number; readonly limit: number }): Promise<{ items: TimedRecord[]; next: number | null }>;
}
