// The port of schedules, as protocols and programs use it.

import type { Run } from "../run/run.ts";
import type { GivenRules } from "./rules.ts";
import type { Overlap, Schedule } from "./schedule.ts";

/** A schedule as its author gives it. `input` is JSON text. */
export interface NewSchedule {
  readonly name: string;
  readonly rules: GivenRules;
  readonly input: string;
}

export interface ListedSchedules {
  readonly items: readonly Schedule[];
  /** The name to continue behind; null at the end. */
  readonly next: string | null;
}

export interface ScheduleStore {
  /**
   * Makes a schedule, or gives it other rules. It keeps its position, history and pause; with other times, it continues with the first one from now on.
   * Rejects with LONGSHORE_BAD_INPUT for rules that cannot be understood, with LONGSHORE_NOT_FOUND for an unknown workflow, with LONGSHORE_CONFLICT for
   * a schedule of a definition file, and with LONGSHORE_LIMIT when there are too many.
   */
  put(wanted: NewSchedule): Promise<{ schedule: Schedule; created: boolean }>;
  /** Makes the schedules of a definition file those that it has now: others that it had before are removed. */
  declare(workflow: string, wanted: readonly NewSchedule[]): Promise<void>;
  get(name: string): Promise<Schedule | undefined>;
  /** In the order of their names. */
  list(page: { limit: number; after?: string; workflow?: string }): Promise<ListedSchedules>;
  /** False when there is none. Runs that it has started go on. */
  remove(name: string): Promise<boolean>;
  /** Starts nothing until it is resumed, except by hand. */
  pause(name: string, reason: string): Promise<Schedule | undefined>;
  /** Continues with the first tick from now on. Ticks of the pause are left out. */
  resume(name: string): Promise<Schedule | undefined>;
  /** Starts a run by hand, with the id if it is given. Rejects with LONGSHORE_CONFLICT when its overlap rule forbids that. */
  run(name: string, options?: { id?: string; overlap?: Overlap }): Promise<{ schedule: Schedule; run: Run } | undefined>;
  /** Starts the runs of past ticks from `from` to `to`, both included, in their order. Ticks that have a run get no other one. */
  backfill(name: string, range: BackfillRange): Promise<Schedule | undefined>;
  /** Ends a backfill before its end. Runs that it has started go on. */
  endBackfill(name: string): Promise<Schedule | undefined>;
  /** The next times of a schedule, with jitter. */
  upcoming(schedule: Schedule, max: number): Promise<readonly Upcoming[]>;
  /** The times of rules that are not stored. */
  preview(rules: GivenRules, after: number, max: number): Promise<readonly number[]>;
}

export interface BackfillRange {
  readonly from: number;
  readonly to: number;
  /** One after the other, or all at once. */
  readonly overlap: "queue" | "allow";
}

export interface Upcoming {
  readonly tick: number;
  /** When it is due: later than the tick by its jitter. */
  readonly dueAt: number;
}
