// Counts events when they happen, with a few additions for each start and end of a run, each hand-out and each attempt. One timer reads the
// number of ready and held tasks every second. It only runs while there are events.

import type { Clock } from "../../core/clock.ts";
import { functionOfLane } from "../../core/turn.ts";
import type { TaskRow } from "../board/task.ts";
import type { AttemptEnd, WorkListener } from "../board/work-listener.ts";
import type { TableSpec } from "../rows.ts";
import type { RunTally, RunWatcher } from "../run/local-tally.ts";
import type { Run, RunState } from "../run/run.ts";
import type { ReadDeps } from "../sliced-reads.ts";
import { ErrorGroups, type FailedRun, hourMs, hoursKept } from "./error-groups.ts";
import type { LocalRing } from "./local-ring.ts";
import { RecentWork } from "./recent-work.ts";
import { type Columns, type Counter, type Level, Series } from "./series.ts";
import { type LaneFigures, type Statistics, type Totals, type Window, type WorkerFigures, windows } from "./statistics.ts";

const second = 1_000;
const minute = 60_000;
/** 15 minutes, 6 hours, 7 days: 1.6 MB. */
const levels: readonly Level[] = [
  { stepMs: second, samples: 900 },
  { stepMs: 10 * second, samples: 2_160 },
  { stepMs: 5 * minute, samples: 2_016 },
];
/** The ring that is kept over restarts. */
const coarsest = windows["7d"];
/** The samples of that ring. */
export const keptSamples: number = levels[coarsest]?.samples ?? 0;
/** The same for a lane or a workflow: 100 kB. */
const namedLevels: readonly Level[] = [
  { stepMs: 10 * second, samples: 90 },
  { stepMs: 5 * minute, samples: 72 },
  { stepMs: 60 * minute, samples: 168 },
];
/** Lanes, and workflows, with series of their own. */
const namedMax = 50;
/** Samples of the finest ring of a name: of 10 s each. */
const samplesOfMinute = 6;
const samplesOfQuarter = 90;
/** A name that was not used for this time may be replaced by another. */
const unusedMs = 60 * minute;
/** How long the number of live workers is used before they are counted again: there may be ten thousand. */
const workersMs = 10 * second;
/** Lanes whose tasks are counted for a sample. */
const lanesMax = 2_000;
/** Runs whose errors are read without a pause. */
const errorsMax = 100;
/** The newest runs that failed before this start, up to this number, are read for their errors. */
const errorsReadMax = 20_000;
/** The work of reading one error, in rows: it is read completely, although only its beginning is used. */
const errorRow = 10;

type Ending = Extract<Counter, "succeeded" | "failed" | "cancelled" | "timedOut">;

/** How a run that has ended is counted. */
const endings: Readonly<Partial<Record<RunState, Ending>>> = {
  succeeded: "succeeded",
  failed: "failed",
  cancelled: "cancelled",
  "timed-out": "timedOut",
};

export interface LocalStatisticsDeps extends ReadDeps {
  readonly clock: Clock;
  readonly lanes: { all(): Iterable<{ readonly lane: { readonly name: string }; readonly ready: { readonly size: number } }> };
  readonly counts: { readonly claimed: number };
  /** Keeps the coarsest ring. Default: it is forgotten with the process. */
  readonly ring?: Pick<LocalRing, "keep" | "read">;
  workers(): { readonly held: number; countByStatus(): Readonly<Record<"idle" | "busy", number>> };
  tally(): RunTally;
}

export class LocalStatistics implements Statistics, RunWatcher, WorkListener {
  readonly since: number;
  readonly #deps: LocalStatisticsDeps;
  readonly #all = new Series(levels);
  readonly #lanes = new Named();
  readonly #workflows = new Named();
  readonly #holders = new Holders();
  readonly #errors = new ErrorGroups();
  readonly #totals = { started: 0, succeeded: 0, failed: 0, cancelled: 0, timedOut: 0 };
  #workers = { at: 0, count: 0 };
  #reading: Promise<void> | null = null;
  #cancelLook: (() => void) | null = null;
  /** The first sample that may have changed since it was stored, and when samples were stored last. */
  #keptFrom = 0;
  #keptAt: number;

  constructor(deps: LocalStatisticsDeps) {
    this.#deps = deps;
    this.since = deps.clock.now();
    this.#keptAt = this.since;
  }

  /** Called before the last commit. */
  close(): void {
    this.#cancelLook?.();
    this.#keep();
  }

  /** Reads the ring of earlier processes. */
  async recover(): Promise<void> {
    const { ring, clock } = this.#deps;
    const samples = (await ring?.read()) ?? [];
    if (samples.length > 0) this.#all.restore(coarsest, samples, clock.now());
  }

  /** Stores the samples that may have changed since the last time. */
  #keep(): void {
    const samples = this.#all.samples(coarsest, this.#keptFrom);
    const last = samples.at(-1);
    if (last === undefined || samples.every(({ values }) => values.length === 0)) return;
    this.#keptFrom = last.number;
    this.#deps.ring?.keep(samples);
  }

  started(run: Run): void {
    this.#lookLater();
    this.#totals.started++;
    this.#all.count("started", run.createdAt);
    this.#workflows.of(run.workflow, run.createdAt)?.count("started", run.createdAt);
  }

  ended(run: Run): void {
    const counter = endings[run.state];
    if (counter === undefined || run.endedAt === null) return;
    this.#lookLater();
    this.#totals[counter]++;
    this.#all.count(counter, run.endedAt);
    const workflow = this.#workflows.of(run.workflow, run.endedAt);
    workflow?.count(counter, run.endedAt);
    const begunAt = run.retries === 0 ? run.createdAt : run.countedFrom;
    workflow?.time("work", run.endedAt - begunAt, run.endedAt);
    this.#errors.add(run);
  }

  handedOut({ lane, queuedAt, dueAt }: TaskRow, at: number): void {
    this.#lookLater();
    const ms = at - Math.max(queuedAt, dueAt);
    this.#all.count("claimed", at);
    this.#all.time("wait", ms, at);
    const ofLane = this.#laneOf(lane, at);
    ofLane?.count("claimed", at);
    ofLane?.time("wait", ms, at);
  }

  attemptOver({ lane, startedAt, holder }: TaskRow, { endedAt, fault }: AttemptEnd): void {
    this.#lookLater();
    const ms = endedAt - (startedAt ?? endedAt);
    if (holder !== null) this.#holders.of(holder, endedAt)?.worked(ms, endedAt, fault !== null);
    const ofLane = this.#laneOf(lane, endedAt);
    this.#all.time("work", ms, endedAt);
    ofLane?.time("work", ms, endedAt);
    if (fault === null) return;
    this.#all.count("attemptsFailed", endedAt);
    ofLane?.count("attemptsFailed", endedAt);
  }

  totals(): Totals {
    return { ...this.#totals, claimed: this.#deps.counts.claimed, openRuns: this.#deps.tally().openRuns };
  }

  counts(): ReturnType<RunTally["counts"]> {
    return this.#deps.tally().counts();
  }

  series(window: Window, of?: { readonly lane: string } | { readonly workflow: string }): Columns | undefined {
    const series = of === undefined ? this.#all : "lane" in of ? this.#lanes.known(of.lane) : this.#workflows.known(of.workflow);
    return series?.columns(windows[window], this.#deps.clock.now());
  }

  worker(id: string): WorkerFigures | undefined {
    return this.#holders.known(id)?.figures(this.#deps.clock.now());
  }

  lane(name: string): LaneFigures | undefined {
    const series = this.#lanes.known(name);
    if (series === undefined) return undefined;
    const now = this.#deps.clock.now();
    const { counts } = series.recent(0, samplesOfMinute, now);
    return { claimedPerMinute: counts.claimed, work: series.recent(0, samplesOfQuarter, now).work };
  }

  async errors(hours: number): Promise<ReturnType<ErrorGroups["groups"]>> {
    this.#reading ??= this.#readErrors();
    await this.#reading;
    return this.#errors.groups(this.#deps.clock.now(), hours);
  }

  /** The runs that ended before the start, the newest first. */
  async #readErrors(): Promise<void> {
    const { store, read, slices } = this.#deps;
    const rows = store.table(failedTable);
    const earliest = this.since - hoursKept * hourMs;
    let below = [this.since, ""];
    for (let looked = 0; looked < errorsReadMax; looked += errorsMax) {
      await slices.turn(errorsMax * errorRow);
      const scan = { by: ["ended_at", "id"], having: "ended_at", above: [earliest, ""], below, backwards: true, limit: errorsMax };
      const some = await read((tx) => [...rows.scan(tx, scan)]);
      for (const run of some) this.#errors.add(run);
      const last = some.at(-1);
      if (last === undefined || some.length < errorsMax) return;
      below = [last.endedAt, last.id];
    }
  }

  #lookLater(): void {
    if (this.#cancelLook !== null) return;
    const { clock } = this.#deps;
    this.#cancelLook = clock.at(clock.now() + second, () => {
      this.#cancelLook = null;
      this.#look();
    });
  }

  #look(): void {
    const now = this.#deps.clock.now();
    if (now - this.#keptAt >= minute) {
      this.#keptAt = now;
      this.#keep();
    }
    const workers = this.#deps.workers();
    if (now >= this.#workers.at + workersMs) {
      const { idle, busy } = workers.countByStatus();
      this.#workers = { at: now, count: idle + busy };
    }
    let ready = 0;
    let passed = 0;
    const byName = new Map<string, number>();
    for (const queue of this.#deps.lanes.all()) {
      if (passed++ === lanesMax) break;
      ready += queue.ready.size;
      byName.set(queue.lane.name, (byName.get(queue.lane.name) ?? 0) + queue.ready.size);
    }
    this.#all.look({ ready, held: workers.held, workers: this.#workers.count }, now);
    for (const [name, series] of this.#lanes.all()) series.look({ ready: byName.get(name) ?? 0, held: 0, workers: 0 }, now);
  }

  #laneOf(lane: TaskRow["lane"], at: number): Series | undefined {
    return lane === null ? undefined : this.#lanes.of(lane.name, at);
  }
}

/** Workers with figures of their own; a further worker replaces the one that was added first. Each takes 600 bytes. */
const holdersMax = 2_000;

/** What each worker did lately. */
class Holders {
  readonly #holders = new Map<string, RecentWork>();

  known(id: string): RecentWork | undefined {
    return this.#holders.get(id);
  }

  of(id: string, now: number): RecentWork | undefined {
    let found = this.#holders.get(id);
    if (found !== undefined) return found;
    if (this.#holders.size >= holdersMax) {
      const [oldest] = this.#holders.keys();
      if (oldest !== undefined) this.#holders.delete(oldest);
    }
    found = new RecentWork(now);
    this.#holders.set(id, found);
    return found;
  }
}

/** Series by name. Callers choose the names, so their number is limited. */
class Named {
  readonly #series = new Map<string, Series>();
  /** No name becomes free before this time. */
  #fullUntil = 0;

  all(): Iterable<[string, Series]> {
    return this.#series;
  }

  known(name: string): Series | undefined {
    return this.#series.get(name);
  }

  of(name: string, now: number): Series | undefined {
    const known = this.#series.get(name);
    if (known !== undefined) return known;
    // Lanes of durable functions are made for each worker.
    if (now < this.#fullUntil || functionOfLane(name) !== undefined) return undefined;
    if (this.#series.size >= namedMax && !this.#makeRoom(now)) return undefined;
    const series = new Series(namedLevels);
    series.usedAt = now;
    this.#series.set(name, series);
    return series;
  }

  #makeRoom(now: number): boolean {
    let oldest: [string, number] = ["", Number.POSITIVE_INFINITY];
    for (const [name, { usedAt }] of this.#series) if (usedAt < oldest[1]) oldest = [name, usedAt];
    if (oldest[1] + unusedMs <= now) return this.#series.delete(oldest[0]);
    this.#fullUntil = now + minute;
    return false;
  }
}

const failedTable: TableSpec<FailedRun & { readonly endedAt: number }> = {
  name: "run",
  key: ["id"],
  columns: ["id", "workflow", "state", "error", "ended_at"].map((column) => [column, () => null] as const),
  of: (row) => ({
    id: row.id as string,
    workflow: row.workflow as string,
    state: row.state as RunState,
    error: row.error as string | null,
    endedAt: row.ended_at as number,
  }),
};
