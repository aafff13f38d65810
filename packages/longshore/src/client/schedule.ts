// Schedules, as a program reads and controls them.

import type { RequestOptions, RunHandle } from "./client.ts";

/** One schedule, by its name. Its methods reject with LONGSHORE_NOT_FOUND when there is no such schedule. */
export interface ScheduleHandle {
  readonly name: string;
  /** The schedule's rules, last 20 ticks and next ten. */
  status(options?: RequestOptions): Promise<ScheduleStatus>;
  /** Pauses it: until it is resumed, only `run()` starts runs. */
  pause(reason: string, options?: RequestOptions): Promise<ScheduleStatus>;
  /** Resumes it with its first tick from now on. Ticks of the pause are left out. */
  resume(options?: RequestOptions): Promise<ScheduleStatus>;
  /** Starts a run now, also during a pause. Rejects with LONGSHORE_CONFLICT when a run is open and the overlap rule forbids another one. */
  run<Output = unknown>(options?: RunNowOptions): Promise<RunHandle<Output>>;
  /**
   * Starts the runs of past ticks from `from` to `to`, both included, in their order. A tick that has a run gets no second run. Rejects with
   * LONGSHORE_CONFLICT while another backfill of it is in progress.
   */
  backfill(range: BackfillRange, options?: RequestOptions): Promise<ScheduleStatus>;
  /** Ends a backfill early. The runs that it has started continue. */
  endBackfill(options?: RequestOptions): Promise<ScheduleStatus>;
  /** Removes the schedule. Its runs continue. Resolves with false when there was none. */
  remove(options?: RequestOptions): Promise<boolean>;
}

/** The options of `run()`. */
export interface RunNowOptions extends RequestOptions {
  /** Instead of the overlap rule of the schedule. */
  overlap?: ScheduleInfo["overlap"];
}

/** Past ticks to start. */
export interface BackfillRange {
  from: Date | string | number;
  to: Date | string | number;
  /** `queue`: each run starts after the end of the one before. `allow`: all at once. Default: `queue`. */
  overlap?: "queue" | "allow";
}

/** Which schedules to list; an absent field does not filter. */
export interface ScheduleFilter extends RequestOptions {
  /** Only schedules of this workflow. */
  workflow?: string;
}

/** A schedule that was stored. */
export interface DefinedSchedule {
  readonly name: string;
  /** False when it was there before. */
  readonly created: boolean;
  /** Epoch milliseconds of its next tick. Null: there is none. */
  readonly nextAt: number | null;
}

/** A schedule as a list shows it. Times are epoch milliseconds. It has `cron`, `every` or `at`. */
export interface ScheduleInfo {
  readonly name: string;
  readonly workflow: string;
  /** The workflow whose definition file contains this schedule; null when no file contains it. */
  readonly source: string | null;
  readonly input: unknown;
  readonly cron?: string | undefined;
  readonly timezone?: string | undefined;
  /** Milliseconds. */
  readonly every?: number | undefined;
  readonly anchor?: number | undefined;
  readonly at?: number | undefined;
  readonly tickField?: string | undefined;
  readonly overlap: "skip" | "queue" | "cancel-previous" | "allow";
  readonly queueMax: number;
  readonly catchUp: "last" | "all";
  /** Milliseconds. */
  readonly catchUpWindow: number;
  /** Milliseconds. */
  readonly jitter: number;
  /** Why it is paused; null when it is not. */
  readonly paused: string | null;
  readonly createdAt: number;
  /** When its rules last changed. */
  readonly updatedAt: number;
  /** The next tick; null when there is none. */
  readonly nextAt: number | null;
  /** When that tick starts its run: later by its jitter. Null while it is paused. */
  readonly dueAt: number | null;
  /** The last tick. */
  readonly lastAt: number | null;
  /** Ids of the runs that may still be open. */
  readonly open: readonly string[];
  /** Ticks that wait for the end of a run. */
  readonly queued: readonly number[];
  readonly backfill: BackfillStatus | null;
  /** The last 20 ticks, newest first. */
  readonly history: readonly ScheduleTick[];
}

/** A schedule with its next ten ticks; it has none while it is paused. */
export interface ScheduleStatus extends ScheduleInfo {
  readonly upcoming: readonly { readonly tick: number; readonly dueAt: number }[];
}

/** A tick and its outcome. */
export interface ScheduleTick {
  /** The time of the tick, without jitter. */
  readonly at: number;
  readonly decidedAt: number;
  /** `present`: a run with the key of this tick existed already. `missed`: no server was running at its time. */
  readonly outcome: "started" | "present" | "queued" | "skipped" | "missed" | "failed";
  /** The run of the tick. For `skipped` and `queued`: the open run that kept the tick from starting. */
  readonly runId: string | null;
  readonly reason: string | null;
  /** How many ticks were missed; not more than 100 are counted. */
  readonly count?: number | undefined;
  /** `run()` or `backfill()`, when one of them started it. */
  readonly by?: "hand" | "backfill" | undefined;
}

/** How far a backfill has come. */
export interface BackfillStatus {
  /** The tick that comes next; null when the last one has started. */
  readonly nextAt: number | null;
  readonly to: number;
  readonly overlap: "queue" | "allow";
  readonly started: number;
  readonly total: number;
}
