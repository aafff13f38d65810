// The ticks of schedules, in the process that owns the data. One transaction records a tick and starts its run, or records that the tick is
// left out. So a server that is killed has done both or neither. The row of a schedule decides what is due; deadlines and ends of runs are
// only hints to look at it.

import type { Clock } from "../../core/clock.ts";
import { isClosing, isTransient, toError } from "../../core/errors.ts";
import { idFrom } from "../../core/ids.ts";
import { eachRow, type Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import type { RowStore } from "../rows.ts";
import type { LocalRuns } from "../run/local-runs.ts";
import { isRunOpen, type Run } from "../run/run.ts";
import { scheduleRows, scheduleTable } from "../tables/schedule.ts";
import type { ReadTx, Tx } from "../tx.ts";
import { type Outcome, runOfTick, type Schedule, type ScheduledRun, tickKey } from "./schedule.ts";
import { fireAt, nextStep, type StepView, stepAt, type TickStart, waiting, withStart } from "./step.ts";
import type { RunRenewal } from "./store.ts";
import { isParsed, Times } from "./times.ts";

/** Deadlines of schedules share the heap with those of tasks. */
export const scheduleDeadlinePrefix = "schedule:";
/** A schedule for a single time is removed this long after it. */
const doneKeptMs = 7 * 86_400_000;
/** When the last tick is further in the future than this, it was written while the clock was wrong. */
const aheadMsMax = 3_600_000;
/** The cost of a step in the budget of its transaction. One that starts a run takes about 100 us. */
const stepSteps = 200;
const startSteps = 1_000;
/** Maximum characters of an error in the history. */
const reasonCharsMax = 500;

export interface LocalTicksDeps {
  store: RowStore;
  commit: GroupCommit;
  clock: Clock;
  runs: LocalRuns;
  deadline: (id: string, at: number | null) => void;
  /** Called after each commit with the outcome of ticks: how many have it, and how late the last of them was decided. */
  ticked?: (outcome: Outcome, count: number, lateMs: number) => void;
}

export class LocalTicks {
  readonly rows: Rows<Schedule>;
  readonly times: Times = new Times();
  readonly #deps: LocalTicksDeps;
  /** The names of all schedules. */
  readonly #names = new Set<string>();
  /** The names of those that a protocol made. */
  readonly #made = new Set<string>();
  renewal: RunRenewal | undefined;
  /** The schedule that waits for the end of a run, by the id of the run. */
  readonly #watched = new Map<string, string>();
  /** The same runs, by the name of the schedule. */
  readonly #watching = new Map<string, readonly string[]>();

  constructor(deps: LocalTicksDeps) {
    this.#deps = deps;
    this.rows = scheduleRows(deps.store, deps.commit, {
      committed: (row) => this.#arm(row, true),
      removed: (name) => this.#forget(name),
    });
  }

  /** How many schedules there are. */
  get size(): number {
    return this.#names.size;
  }

  /** How many there are, including those of this batch. */
  count(tx: Tx): number {
    return this.#names.size + this.rows.pending(tx).filter(({ name }) => !this.#names.has(name)).length;
  }

  /** A deadline of this schedule has passed, or a run that it waits for has ended. */
  async fire(name: string): Promise<void> {
    const { commit } = this.#deps;
    const renewed = this.#made.has(name) ? await this.#renewed(name) : undefined;
    try {
      await commit.run((tx) => this.#step(tx, name, null, renewed));
    } catch (error) {
      if (isTransient(error) || isClosing(error)) throw error;
      // The start was undone with all that it changed. The tick is recorded as failed, because otherwise it would stay due.
      await commit.run((tx) => this.#step(tx, name, toError(error).message));
    }
  }

  /** Called after each commit that changed this run. */
  runChanged(run: Run): void {
    const name = isRunOpen(run.state) ? undefined : this.#watched.get(run.id);
    if (name === undefined) return;
    this.#watched.delete(run.id);
    this.#deps.deadline(scheduleDeadlinePrefix + name, this.#deps.clock.now());
  }

  /** Starts the run of a tick, and returns the row that shows it. With `failure`, only the row. */
  start(tx: Tx, row: Schedule, start: TickStart, failure: string | null = null): Schedule {
    const { runs, clock } = this.#deps;
    const now = clock.now();
    const failed = (reason: string) =>
      withStart(row, start, { now, outcome: "failed", runId: null, reason: reason.slice(0, reasonCharsMax) });
    if (failure !== null) return failed(failure);
    tx.spend(startSteps);
    const definition = runs.definitions.newest(tx, row.workflow);
    if (definition === null) return failed(`there is no workflow ${row.workflow}`);
    for (const id of start.cancels) runs.cancelNow(tx, id, `the next tick of schedule ${row.name} has come`);
    const key = tickKey(row.name, start.tick);
    const definitionId = this.definitionOf(tx, row) ?? definition.id;
    const own = runOfTick(row, { id: idFrom(key, now), tick: start.tick, now });
    const { run, created, skipped = false } = runs.startNow(tx, { workflow: row.workflow, definitionId, key, atOnce: true, ...own });
    const present = skipped
      ? { outcome: "skipped" as const, reason: "the limit of its workflow is reached" }
      : { outcome: "present" as const };
    return withStart(row, start, { now, runId: run.id, ...(created ? { outcome: "started" as const } : present) });
  }

  /** The definition that a protocol wants for the runs of its schedule; undefined for every other schedule, and when it was removed. */
  definitionOf(tx: ReadTx, { run }: Schedule): string | undefined {
    return run === undefined ? undefined : this.#deps.runs.definitions.byId(tx, run.definitionId)?.id;
  }

  view(tx: ReadTx): StepView {
    const { runs, clock } = this.#deps;
    const isOpen = (id: string) => {
      const run = runs.runs.get(tx, id);
      return run !== null && isRunOpen(run.state);
    };
    return { now: clock.now(), times: this.times, isOpen };
  }

  async recover(): Promise<void> {
    const { store, commit, clock } = this.#deps;
    const found: Schedule[] = [];
    await eachRow(commit, store.table(scheduleTable), { by: ["name"] }, { at: ({ name }) => [name], take: (row) => found.push(row) });
    if (found.some(({ when }) => isParsed(when))) await this.times.load();
    for (const row of found) this.#arm(row, true);
    const isAhead = ({ lastAt }: Schedule) => lastAt !== null && lastAt > clock.now() + aheadMsMax;
    for (const { name } of found.filter(isAhead)) {
      await commit.run((tx) => {
        const row = this.rows.get(tx, name);
        // The server with the wrong clock has already started some of the ticks that come next. Their keys find their runs, so no tick
        // starts twice.
        if (row !== null) this.rows.put(tx, name, { ...row, nextAt: this.times.next(row.when, clock.now()), lastAt: null });
      });
    }
  }

  async #renewed(name: string): Promise<ScheduledRun | undefined> {
    const row = await this.#deps.commit.read((tx) => this.rows.get(tx, name));
    return row?.run === undefined ? undefined : this.renewal?.(row, row.run);
  }

  #step(tx: Tx, name: string, failure: string | null, renewed?: ScheduledRun): void {
    const stored = this.rows.get(tx, name);
    if (stored === null) return;
    // Not if the schedule was replaced in the meantime.
    const row = renewed !== undefined && renewed.note === stored.run?.note ? { ...stored, run: renewed } : stored;
    const { now } = this.view(tx);
    const before = this.times.steps;
    const step = nextStep(row, this.view(tx));
    tx.spend(stepSteps + this.times.steps - before);
    if (step === null) {
      if (doneUntil(row) <= now) this.rows.remove(tx, name);
      // The deadline was a hint that came too early.
      else tx.after(() => this.#arm(row, false));
      return;
    }
    const after = step.start === null ? step.row : this.start(tx, step.row, step.start, failure);
    this.rows.put(tx, name, after);
    tx.after(() => this.#report(row, after, now));
  }

  /** Counts the entries that a step has added to the history. */
  #report(before: Schedule, after: Schedule, now: number): void {
    const { ticked } = this.#deps;
    const known = new Set(before.history);
    for (const tick of after.history) {
      if (known.has(tick)) break;
      const late = tick.by === undefined ? now - fireAt(after, tick.at) : 0;
      ticked?.(tick.outcome, tick.count ?? 1, late);
    }
  }

  /**
   * Sets the deadline of the schedule. With `looks`, the deadline is now when something is ready. It is also now when the schedule waits
   * for runs, because they may have ended.
   */
  #arm(row: Schedule, looks: boolean): void {
    const { clock, deadline } = this.#deps;
    const { name } = row;
    this.#names.add(name);
    if (row.run === undefined) this.#made.delete(name);
    else this.#made.add(name);
    const { isReady, runs } = waiting(row);
    this.#unwatch(name);
    for (const id of runs) this.#watched.set(id, name);
    if (runs.length > 0) this.#watching.set(name, runs);
    const done = doneUntil(row);
    const at = stepAt(row) ?? (done === Number.POSITIVE_INFINITY ? null : done);
    deadline(scheduleDeadlinePrefix + name, looks && (isReady || runs.length > 0) ? clock.now() : at);
  }

  #forget(name: string): void {
    this.#names.delete(name);
    this.#made.delete(name);
    this.#unwatch(name);
    this.#deps.deadline(scheduleDeadlinePrefix + name, null);
  }

  #unwatch(name: string): void {
    for (const id of this.#watching.get(name) ?? []) this.#watched.delete(id);
    this.#watching.delete(name);
  }
}

/** The time at which a schedule is removed. Only a schedule for a single time is removed, some time after it is done. */
function doneUntil({ when, nextAt, queued, backfill, updatedAt, lastAt }: Schedule): number {
  const isDone = when.kind === "at" && nextAt === null && queued.length === 0 && backfill === null;
  return isDone ? Math.max(updatedAt, lastAt ?? 0) + doneKeptMs : Number.POSITIVE_INFINITY;
}
