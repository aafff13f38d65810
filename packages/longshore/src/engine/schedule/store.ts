// The port of schedules, as protocols and programs use it.

import type { Position } from "../../core/file-place.ts";
import type { Overlap } from "../../core/start-limit.ts";
import type { Run } from "../run/run.ts";
import type { GivenRules } from "./rules.ts";
import type { Schedule, ScheduledRun } from "./schedule.ts";
import type { When } from "./times.ts";

/** A schedule as its author gives it. `input` is JSON text. */
export interface NewSchedule {
  readonly name: string;
  readonly rules: GivenRules;
  readonly input: string;
  readonly own?: OwnRules;
}

/** What only a protocol gives: times instead of those of `rules`, and what its runs get. */
export interface OwnRules {
  readonly when: When & { kind: "crons" };
  readonly run: ScheduledRun;
}

/** Makes the part of a protocol in the runs of one of its schedules again. Undefined: it stays as it is. */
export type RunRenewal = (row: Schedule, run: ScheduledRun) => Promise<ScheduledRun | undefined>;

/** A schedule of a definition file, with its place there for errors. */
export interface DeclaredSchedule extends NewSchedule {
  readonly place?: Position;
}

export interface ListedSchedules {
  readonly items: readonly Schedule[];
  /** The name to continue behind; null at the end. */
  readonly next: string | null;
}

export interface ScheduleStore {
  /**
   * Makes a schedule, or replaces its rules. It keeps its history and pause. It also keeps its next tick, unless the rule for its times
   * changes: then the next tick is the first one from now on. Rejects with LONGSHORE_BAD_INPUT for invalid rules, with LONGSHORE_NOT_FOUND
   * for an unknown workflow, with LONGSHORE_CONFLICT for a schedule of a definition file, and with LONGSHORE_LIMIT when there are too many.
   */
  put(wanted: NewSchedule): Promise<{ schedule: Schedule; created: boolean }>;
  /**
   * Stores the schedules of a definition file, and removes those that the file had before and has no more. Rejects with LONGSHORE_BAD_DEFINITION
   * with line and column for invalid rules, and with LONGSHORE_CONFLICT for the name of a schedule with another origin. With `dryRun` it
   * changes nothing.
   */
  declare(workflow: string, wanted: readonly DeclaredSchedule[], options?: { dryRun?: boolean }): Promise<void>;
  get(name: string): Promise<Schedule | undefined>;
  /** In the order of their names. */
  list(page: { limit: number; after?: string; workflow?: string }): Promise<ListedSchedules>;
  /** Returns false when there is no such schedule. Runs that it has started continue. */
  remove(name: string): Promise<boolean>;
  /** A paused schedule starts nothing until it is resumed, except by `run`. */
  pause(name: string, reason: string): Promise<Schedule | undefined>;
  /** Continues with the first tick from now on. Ticks of the pause are left out. */
  resume(name: string): Promise<Schedule | undefined>;
  /** Starts a run by hand, with the id if it is given. Rejects with LONGSHORE_CONFLICT when its overlap rule forbids that. */
  run(name: string, options?: { id?: string; overlap?: Overlap }): Promise<{ schedule: Schedule; run: Run } | undefined>;
  /** Starts the runs of past ticks from `from` to `to`, both included, in their order. Ticks that have a run get no other one. */
  backfill(name: string, range: BackfillRange): Promise<Schedule | undefined>;
  /** Stops a backfill. Runs that it has started continue. */
  endBackfill(name: string): Promise<Schedule | undefined>;
  /** The next times of a schedule, with jitter. */
  upcoming(schedule: Schedule, max: number): Promise<readonly Upcoming[]>;
  /** The times of rules that are not stored. */
  preview(rules: GivenRules | OwnRules["when"], after: number, max: number): Promise<readonly number[]>;
  /** Sets a check before each tick of a schedule that a protocol made: a workflow may have changed since it was stored. */
  renewsRuns(renew: RunRenewal): void;
}

export interface BackfillRange {
  readonly from: number;
  readonly to: number;
  /** `queue`: one run after the other; `allow`: all at once. */
  readonly overlap: "queue" | "allow";
}

export interface Upcoming {
  readonly tick: number;
  /** When it is due: later than the tick by its jitter. */
  readonly dueAt: number;
}
