// A schedule: the rules that its author gives, and its progress. A *tick* is one of the times at which it starts a run.

import { parseExact, writeExact } from "../../core/json/json-exact.ts";
import type { Overlap } from "../../core/start-limit.ts";
import type { When } from "./times.ts";

/** Which ticks start when several are due at once, because no server was running at their times. */
export const catchUps = ["last", "all"] as const;
export type CatchUp = (typeof catchUps)[number];

/**
 * What a protocol gives each run of a schedule that it made, besides the input. Only this protocol may change such a schedule: a change by
 * hand would lose these values.
 */
export interface ScheduledRun {
  /** The definition of its runs; the newest of the workflow when this one was removed. */
  readonly definitionId: string;
  readonly alias: string | null;
  readonly priority: number;
  readonly settings: string | null;
  readonly variables: string | null;
  /** Fields of the input that get the time of the tick, the time of the start and the id of the run. The times are epoch milliseconds. */
  readonly fields: { readonly tick: string; readonly startedAt: string; readonly runId: string };
  /** A text of the protocol, for its own use. */
  readonly note: string;
}

export function ownCharsOf({ alias, settings, variables, note }: ScheduledRun): number {
  return (alias?.length ?? 0) + (settings?.length ?? 0) + (variables?.length ?? 0) + note.length;
}

/** What the author of a schedule decides. */
export interface ScheduleRules {
  readonly when: When;
  readonly workflow: string;
  /** JSON text: the input of each run. */
  readonly input: string;
  /** The field of the input that gets the time of the tick. Null: none. */
  readonly tickField: string | null;
  readonly overlap: Overlap;
  /** How many ticks wait at most, with `queue`. */
  readonly queueMax: number;
  readonly catchUp: CatchUp;
  /** Ticks that are older than this do not start any more. */
  readonly catchUpMs: number;
  readonly jitterMs: number;
  readonly run?: ScheduledRun;
}

/**
 * The outcome of a tick. `missed`: no server was running at its time. `failed`: its run could not be started. `present`: its run existed
 * already, because another caller has started a run with the key of the tick.
 */
export type Outcome = "started" | "present" | "queued" | "skipped" | "missed" | "failed";

/** An entry of the history. */
export interface Tick {
  /** The time that the rule gives. */
  readonly at: number;
  /** When the server decided. */
  readonly decidedAt: number;
  readonly outcome: Outcome;
  /** The run that was started. For `skipped`: the open run that kept the tick from starting. */
  readonly runId: string | null;
  /** Why a run could not be started, or the tick was left out. */
  readonly reason: string | null;
  /** How many ticks were missed, this one and those after it; at most `missedCountMax`. */
  readonly count?: number;
  /** Absent for a tick at its time. */
  readonly by?: "hand" | "backfill";
}

/** A range of past ticks that is being started. */
export interface Backfill {
  /** The tick that comes next. */
  readonly nextAt: number;
  readonly to: number;
  /** Whether its runs may overlap; if not, each starts after the end of the one before. */
  readonly overlap: "queue" | "allow";
  /** The run that must end first. */
  readonly runId: string | null;
  readonly started: number;
  readonly total: number;
}

export interface Schedule extends ScheduleRules {
  readonly name: string;
  /** The workflow whose definition file contains the schedule. Null: no file contains it. */
  readonly source: string | null;
  /** Why it is paused. Null: it is not. */
  readonly paused: string | null;
  readonly createdAt: number;
  readonly updatedAt: number;
  /** The next tick, without jitter. Null: there is none. */
  readonly nextAt: number | null;
  /** The last tick that was decided. */
  readonly lastAt: number | null;
  /** The newest runs of this schedule that may still be open. */
  readonly open: readonly string[];
  /** Ticks that wait for the end of a run, oldest first. */
  readonly queued: readonly number[];
  readonly backfill: Backfill | null;
  /** The last ticks, newest first. */
  readonly history: readonly Tick[];
}

/** How many ticks a schedule remembers. */
export const historyMax = 20;
/** How many of its next times a schedule shows. */
export const upcomingShown = 10;
/** How many missed ticks are counted one by one. */
export const missedCountMax = 100;
/** Maximum number of open runs that a schedule remembers when they may overlap. */
export const openMax = 50;

/** The start key of a tick's run: a tick has one run, however often it is started. */
export function tickKey(name: string, tick: number): string {
  return `schedule:${name}@${new Date(tick).toISOString()}`;
}

/** A tick's run, except for its workflow and its start key. */
export function runOfTick(rules: ScheduleRules, { id, tick, now }: { id: string; tick: number; now: number }) {
  const { run } = rules;
  const input = inputOf(rules, tick);
  if (run === undefined) return { id, input };
  const { alias, priority, settings, variables, fields } = run;
  const added = { [fields.tick]: tick, [fields.startedAt]: now, [fields.runId]: id };
  return { id, input: writeExact({ ...(parseExact(input) as object), ...added }), alias, priority, settings, variables };
}

/** JSON text of the input of a tick's run, before its protocol adds to it. */
export function inputOf({ input, tickField }: Pick<ScheduleRules, "input" | "tickField">, tick: number): string {
  if (tickField === null) return input;
  return writeExact({ ...(parseExact(input) as object), [tickField]: new Date(tick).toISOString() });
}
