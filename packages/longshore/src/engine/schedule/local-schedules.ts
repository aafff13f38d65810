// What callers do with schedules, in the process that owns the data. Their ticks are in local-ticks.ts.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { idFrom } from "../../core/ids.ts";
import { Slices } from "../../core/slices/slices.ts";
import type { Overlap } from "../../core/start-limit.ts";
import { type Audit, unaudited } from "../audit/local-audit.ts";
import type { GroupCommit } from "../commit.ts";
import { type Once, unmarked } from "../request-marks.ts";
import type { RowStore, TableRows } from "../rows.ts";
import type { LocalRuns } from "../run/local-runs.ts";
import { pageAtOnceCharsMax } from "../run/reader.ts";
import { refuseUnfit } from "../run/refuse-input.ts";
import type { Run } from "../run/run.ts";
import { unknownWorkflow } from "../run/runs.ts";
import { scheduleChars, scheduleTable } from "../tables/schedule.ts";
import type { ReadTx, Tx } from "../tx.ts";
import type { LocalTicks } from "./local-ticks.ts";
import { checkedCrons, checkScheduleName, type GivenRules, rulesOf } from "./rules.ts";
import { inputOf, openMax, runOfTick, type Schedule, type ScheduleRules } from "./schedule.ts";
import { scheduleOrder } from "./schedule-audit.ts";
import {
  badRange,
  badReason,
  declaredElsewhere,
  madeElsewhere,
  nameTaken,
  neverComes,
  overlapping,
  placed,
  tooMany,
  tooManyMissed,
  tooManyTicks,
} from "./schedule-errors.ts";
import { fireAt, withTick } from "./step.ts";
import type {
  BackfillRange,
  DeclaredSchedule,
  ListedSchedules,
  NewSchedule,
  OwnRules,
  RunRenewal,
  ScheduleStore,
  Upcoming,
} from "./store.ts";
import { isParsed } from "./times.ts";

/** Maximum number of schedules: the name and the deadline of each are in memory. */
const schedulesMax = 10_000;
/** Maximum number of ticks in one backfill. */
const backfillMax = 1_000;
/**
 * Maximum number of ticks that start together after a downtime, with `catchUp: "all"`: each minute of the default window, and some more.
 */
const catchUpTicksMax = 2_000;
/** Maximum length of a reason: people write less. */
const reasonCharsMax = 1_000;

export interface LocalSchedulesDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  /** Default: nothing is noted. */
  audit?: Audit;
  clock: Clock;
  runs: LocalRuns;
  ticks: LocalTicks;
  /** Default: turns of its own. */
  slices?: Slices;
  /** Replaced in tests. */
  schedulesMax?: number;
}

/** A name and rules that are valid. */
interface Checked {
  readonly name: string;
  readonly rules: ScheduleRules;
}

/** Schedules that are read without a pause: each remembers up to 20 ticks. */
const rowsAtOnce = 50;
/** The weight of such a row in a turn of the event loop: reading 4 kB takes 40 us. */
const rowWeight = 16;

export class LocalSchedules implements ScheduleStore {
  readonly #commit: GroupCommit;
  readonly #once: Once;
  readonly #audit: Audit;
  readonly #clock: Clock;
  readonly #runs: LocalRuns;
  readonly #ticks: LocalTicks;
  readonly #stored: TableRows<Schedule>;
  readonly #max: number;
  readonly #slices: Slices;

  constructor(deps: LocalSchedulesDeps) {
    const { store, commit, performed = unmarked(commit), clock, runs, ticks, schedulesMax: max = schedulesMax } = deps;
    this.#slices = deps.slices ?? new Slices();
    this.#commit = commit;
    this.#once = performed;
    this.#audit = deps.audit ?? unaudited;
    this.#clock = clock;
    this.#runs = runs;
    this.#ticks = ticks;
    this.#stored = store.table(scheduleTable);
    this.#max = max;
  }

  async put(wanted: NewSchedule): Promise<{ schedule: Schedule; created: boolean }> {
    const checked = await this.#check(wanted);
    return this.#commit.run((tx) => {
      const before = this.#ticks.rows.get(tx, checked.name);
      if (before !== null && before.source !== null) throw declaredElsewhere(before);
      if (before?.run !== undefined && wanted.own === undefined) throw madeElsewhere(before);
      this.#fittingWorkflow(tx, checked.rules);
      return { schedule: this.#write(tx, checked, before, null), created: before === null };
    });
  }

  async declare(workflow: string, wanted: readonly DeclaredSchedule[], { dryRun = false }: { dryRun?: boolean } = {}): Promise<void> {
    const checked: Checked[] = [];
    for (const each of wanted) checked.push(await this.#check(each).catch((error) => Promise.reject(placed(error, each))));
    const before = (tx: ReadTx, { name }: Checked) => {
      const row = this.#ticks.rows.get(tx, name);
      if (row !== null && row.source !== workflow) throw nameTaken(row, workflow);
      return row;
    };
    const had = await this.#commit.read((tx) => {
      for (const each of checked) before(tx, each);
      return this.#ofSource(tx, workflow);
    });
    if (dryRun || (checked.length === 0 && had.length === 0)) return;
    await this.#commit.run((tx) => {
      for (const { name } of this.#ofSource(tx, workflow)) if (!checked.some((each) => each.name === name)) this.#remove(tx, name);
      for (const each of checked) this.#write(tx, each, before(tx, each), workflow);
    });
  }

  get(name: string): Promise<Schedule | undefined> {
    return this.#commit.read((tx) => this.#ticks.rows.get(tx, name) ?? undefined);
  }

  async list({ limit, after = "", workflow }: { limit: number; after?: string; workflow?: string }): Promise<ListedSchedules> {
    const scan =
      workflow === undefined ? { by: ["name"], above: [after] } : { by: ["workflow", "name"], equal: [workflow], above: [after] };
    const enough = { chars: pageAtOnceCharsMax, of: ["input", "rules"] };
    const items: Schedule[] = [];
    let chars = 0;
    for (let above = [...scan.above]; ; above = [items.at(-1)?.name ?? after]) {
      await this.#slices.turn(rowsAtOnce * rowWeight);
      const rows = await this.#commit.read((tx) => [...this.#stored.scan(tx, { ...scan, above, enough, limit: rowsAtOnce })]);
      if (rows.length === 0) return { items, next: null };
      for (const row of rows) {
        // Only a row beyond the page shows that there is a next one.
        if (items.length === limit || chars >= pageAtOnceCharsMax) return { items, next: items.at(-1)?.name ?? null };
        items.push(row);
        chars += scheduleChars(row);
      }
    }
  }

  remove(name: string): Promise<boolean> {
    return this.#once.once(
      `remove schedule ${name}`,
      (tx) => this.#remove(tx, name),
      (_tx, kept) => kept,
    );
  }

  #remove(tx: Tx, name: string): boolean {
    const row = this.#ticks.rows.get(tx, name);
    if (row === null) return false;
    this.#ticks.rows.remove(tx, name);
    this.#audit.note(tx, scheduleOrder("remove", row, null));
    return true;
  }

  pause(name: string, reason: string): Promise<Schedule | undefined> {
    if (reason === "" || reason.length > reasonCharsMax) return Promise.reject(badReason(reason, reasonCharsMax));
    return this.#change("pause", name, (row) => ({ ...row, paused: reason }));
  }

  resume(name: string): Promise<Schedule | undefined> {
    return this.#change("resume", name, (row) => {
      if (row.paused === null) return row;
      const nextAt = row.nextAt === null ? null : this.#ticks.times.next(row.when, this.#clock.now());
      return { ...row, paused: null, nextAt };
    });
  }

  run(name: string, { id, overlap }: { id?: string; overlap?: Overlap } = {}): Promise<{ schedule: Schedule; run: Run } | undefined> {
    const found = (tx: ReadTx, runId: string) => {
      const [row, run] = [this.#ticks.rows.get(tx, name), this.#runs.runs.get(tx, runId)];
      return row === null || run === null ? undefined : { schedule: row, run };
    };
    const now = this.#clock.now();
    const runId = id ?? idFrom(`${name} by hand`, now);
    const start = (tx: Tx) => {
      const row = this.#ticks.rows.get(tx, name);
      if (row === null) return undefined;
      this.#startByHand(tx, row, { runId, now, overlap: overlap ?? row.overlap });
      return found(tx, runId);
    };
    return this.#once.once(`run schedule ${name}`, start, (tx) => found(tx, runId));
  }

  async backfill(name: string, { from, to, overlap }: BackfillRange): Promise<Schedule | undefined> {
    const now = this.#clock.now();
    if (to > now || from > to) throw badRange(from, to);
    await this.#ticks.times.load();
    const { when } = (await this.get(name)) ?? {};
    const range = { after: from - 1, upTo: to, max: backfillMax + 1 };
    const ticks = when === undefined ? [] : await this.#ticks.times.list(when, range, this.#slices);
    return this.#change("backfill", name, (row) => {
      if (!isSame(row.when, when))
        throw new LongshoreError("LONGSHORE_CONFLICT", `The times of schedule ${name} have just changed: look at them, and try again.`);
      if (row.backfill !== null)
        throw new LongshoreError("LONGSHORE_CONFLICT", `Schedule ${name} has a backfill in progress: wait for its end, or end it first.`);
      if (ticks.length > backfillMax) throw tooManyTicks(name, backfillMax);
      const [nextAt] = ticks;
      if (nextAt === undefined) return row;
      return { ...row, backfill: { nextAt, to, overlap, runId: null, started: 0, total: ticks.length } };
    });
  }

  renewsRuns(renew: RunRenewal): void {
    this.#ticks.renewal = renew;
  }

  endBackfill(name: string): Promise<Schedule | undefined> {
    return this.#change("end backfill", name, (row) => (row.backfill === null ? row : { ...row, backfill: null }));
  }

  async upcoming(row: Schedule, max: number): Promise<readonly Upcoming[]> {
    if (row.nextAt === null || row.paused !== null || max === 0) return [];
    await this.#ticks.times.load();
    const ticks = [row.nextAt, ...(await this.#ticks.times.list(row.when, { after: row.nextAt, max: max - 1 }, this.#slices))];
    return ticks.map((tick) => ({ tick, dueAt: fireAt(row, tick) }));
  }

  async preview(given: GivenRules | OwnRules["when"], after: number, max: number): Promise<readonly number[]> {
    const when = "kind" in given ? checkedCrons(given) : rulesOf(given, "null").when;
    await this.#ticks.times.load();
    return this.#ticks.times.list(when, { after, max }, this.#slices);
  }

  /** Throws LONGSHORE_BAD_INPUT for an invalid name or rule, and for a cron expression without a time in the future. */
  async #check({ name, rules: given, input, own }: NewSchedule): Promise<Checked> {
    checkScheduleName(name);
    const rules = rulesOf(given, input, own);
    if (isParsed(rules.when)) await this.#ticks.times.load();
    if (isParsed(rules.when) && this.#ticks.times.next(rules.when, this.#clock.now()) === null) throw neverComes(rules.when);
    await this.#refuseManyMissed(rules);
    return { name, rules };
  }

  /** The limit of ticks that start at once is checked when the schedule is made, and not after the downtime. */
  async #refuseManyMissed({ when, catchUp, catchUpMs }: ScheduleRules): Promise<void> {
    const first = catchUp === "all" ? this.#ticks.times.next(when, this.#clock.now()) : null;
    if (first === null) return;
    const range = { after: first - 1, upTo: first + catchUpMs - 1, max: catchUpTicksMax + 1 };
    if ((await this.#ticks.times.list(when, range, this.#slices)).length > catchUpTicksMax) throw tooManyMissed(catchUpMs, catchUpTicksMax);
  }

  /** With an input that does not fit, every tick would be refused. */
  #fittingWorkflow(tx: ReadTx, rules: ScheduleRules): void {
    const { workflow } = rules;
    const definition = this.#runs.definitions.newest(tx, workflow);
    if (definition === null) throw unknownWorkflow(workflow);
    const { inputSchema } = this.#runs.definitions.plan(tx, definition);
    if (inputSchema !== undefined) refuseUnfit({ workflow, input: inputOf(rules, this.#clock.now()) }, inputSchema);
  }

  /** A schedule keeps its next tick when the rule for its times does not change. */
  #write(tx: Tx, { name, rules }: Checked, before: Schedule | null, source: string | null): Schedule {
    const now = this.#clock.now();
    if (before === null) {
      if (this.#ticks.count(tx) >= this.#max) throw tooMany(this.#max);
      const fresh = { paused: null, lastAt: null, open: [], queued: [], backfill: null, history: [] };
      const nextAt = this.#ticks.times.next(rules.when, now);
      const row: Schedule = { ...rules, ...fresh, name, source, createdAt: now, updatedAt: now, nextAt };
      this.#ticks.rows.put(tx, name, row, true);
      this.#audit.note(tx, scheduleOrder("create", null, row));
      return row;
    }
    const { when, workflow, input, tickField, overlap, queueMax, catchUp, catchUpMs, jitterMs, run } = before;
    if (isSame({ when, workflow, input, tickField, overlap, queueMax, catchUp, catchUpMs, jitterMs, run }, rules)) return before;
    const moved = isSame(when, rules.when) ? {} : { nextAt: this.#ticks.times.next(rules.when, now), backfill: null };
    const row: Schedule = { ...before, ...rules, ...moved, updatedAt: Math.max(now, before.updatedAt + 1) };
    this.#ticks.rows.put(tx, name, row);
    this.#audit.note(tx, scheduleOrder("change", before, row));
    return row;
  }

  async #change(what: string, name: string, change: (row: Schedule) => Schedule): Promise<Schedule | undefined> {
    await this.#ticks.times.load();
    const after = (tx: ReadTx) => this.#ticks.rows.get(tx, name) ?? undefined;
    const work = (tx: Tx) => {
      const row = this.#ticks.rows.get(tx, name);
      const changed = row === null ? null : change(row);
      if (row === null || changed === null || changed === row) return after(tx);
      this.#ticks.rows.put(tx, name, changed);
      this.#audit.note(tx, scheduleOrder(what, row, changed));
      return after(tx);
    };
    return this.#once.once(`${what} schedule ${name}`, work, after);
  }

  #startByHand(tx: Tx, row: Schedule, { runId, now, overlap }: { runId: string; now: number; overlap: Overlap }): void {
    const { isOpen } = this.#ticks.view(tx);
    const open = row.open.filter(isOpen);
    const [running] = open;
    if (running !== undefined && (overlap === "skip" || overlap === "queue")) throw overlapping(row, running);
    const definition = this.#runs.definitions.newest(tx, row.workflow);
    if (definition === null) throw unknownWorkflow(row.workflow);
    if (overlap === "cancel-previous") for (const id of open) this.#runs.cancelNow(tx, id, `schedule ${row.name} was run by hand`);
    const definitionId = this.#ticks.definitionOf(tx, row) ?? definition.id;
    this.#runs.startNow(tx, {
      unlessThere: true,
      atOnce: true,
      workflow: row.workflow,
      definitionId,
      ...runOfTick(row, { id: runId, tick: now, now }),
    });
    this.#audit.note(tx, { verb: "run", kind: "schedule", target: row.name, was: null, became: { run: runId } });
    const noted = withTick(row, { at: now, decidedAt: now, outcome: "started", runId, reason: null, by: "hand" });
    this.#ticks.rows.put(tx, row.name, { ...noted, open: [...open, runId].slice(-openMax) });
  }

  /** The schedules of a definition file. */
  #ofSource(tx: ReadTx, source: string): Schedule[] {
    const stored = [...this.#stored.scan(tx, { by: ["source", "name"], equal: [source] })];
    const found = stored.flatMap((row) => this.#ticks.rows.newest(tx, row.name, row) ?? []);
    const fresh = this.#ticks.rows.pending(tx).filter((row) => row.source === source && !stored.some(({ name }) => name === row.name));
    return [...found, ...fresh].filter((row) => row.source === source);
  }
}

function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
