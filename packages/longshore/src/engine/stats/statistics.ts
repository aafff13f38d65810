// The port of the statistics that the server counts. Pages show them; no decision depends on them.

import type { RunState } from "../run/run.ts";
import type { ErrorGroup } from "./error-groups.ts";
import type { Columns, WorkTimes } from "./series.ts";

/** The windows of a series, and the index of each among its rings. */
export const windows = { "15m": 0, "6h": 1, "7d": 2 } as const;
export type Window = keyof typeof windows;

export interface RunCount {
  readonly workflow: string;
  readonly state: RunState;
  readonly count: number;
}

/** Since the start of this server. */
export interface Totals {
  readonly started: number;
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly timedOut: number;
  readonly claimed: number;
  readonly openRuns: number;
}

/** What a worker did lately. */
export interface WorkerFigures {
  /** Attempts that ended in the last minute. */
  readonly perMinute: number;
  /** Of the last 15 minutes at most. */
  readonly attempts: number;
  readonly failed: number;
  /** The longest of 95 of 100 attempts, in milliseconds; null when none has ended. */
  readonly p95: number | null;
}

/** What happened on a lane lately. */
export interface LaneFigures {
  readonly claimedPerMinute: number;
  /** Of the last 15 minutes. */
  readonly work: WorkTimes;
}

export interface Statistics {
  /** Undefined for a worker that has not ended an attempt lately. */
  worker(id: string): WorkerFigures | undefined;
  lane(name: string): LaneFigures | undefined;
  /** When it began to count. */
  readonly since: number;
  totals(): Totals;
  /** How many runs of each workflow are in each state. The first call counts all ended runs, in slices. */
  counts(): Promise<readonly RunCount[]>;
  /** The series of the server, of a lane or of a workflow; undefined when nothing was counted under this name lately. */
  series(window: Window, of?: { readonly lane: string } | { readonly workflow: string }): Columns | undefined;
  /** Errors of runs that ended in the last hours. The first call reads the errors from before the start, in slices. */
  errors(hours: number): Promise<readonly ErrorGroup[]>;
}
