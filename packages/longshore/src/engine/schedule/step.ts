// Computes what a schedule does next, from its row, the time, and which of its runs are open. Pure functions. A step starts at most one
// run. The caller starts it in the same transaction, and takes steps until there is nothing to do.

import { type Backfill, historyMax, missedCountMax, type Outcome, openMax, type Schedule, type Tick } from "./schedule.ts";
import { jitterOf, type Times } from "./times.ts";

export interface StepView {
  readonly now: number;
  readonly times: Times;
  isOpen(runId: string): boolean;
}

/** A run to start. */
export interface TickStart {
  readonly tick: number;
  /** Runs to cancel before the start. */
  readonly cancels: readonly string[];
  readonly by?: "backfill";
}

/** The row after the step, and the run to start. `withStart` adds the start to the row. */
export interface Step {
  readonly row: Schedule;
  readonly start: TickStart | null;
}

/** How many ticks are examined one by one when jitter is longer than the interval. */
const looksMax = 100;

/** Null: there is nothing to do now. */
export function nextStep(row: Schedule, view: StepView): Step | null {
  if (row.paused !== null) return null;
  const { nextAt } = row;
  if (nextAt !== null && fireAt(row, nextAt) <= view.now) return dueStep(row, nextAt, view);
  return queueStep(row, view) ?? backfillStep(row, view);
}

/** The time at which the next tick is due; null when only the end of a run, or a change, gives `nextStep` something to do. */
export function stepAt(row: Schedule): number | null {
  return row.paused !== null || row.nextAt === null ? null : fireAt(row, row.nextAt);
}

/** Whether `nextStep` has something to do now, even if no tick is due. Also returns the runs whose end gives it something to do. */
export function waiting(row: Schedule): { readonly isReady: boolean; readonly runs: readonly string[] } {
  const { backfill, queued, open, paused } = row;
  if (paused !== null) return { isReady: false, runs: [] };
  const isReady = (queued.length > 0 && open.length === 0) || (backfill !== null && backfill.runId === null);
  return { isReady, runs: [...(queued.length > 0 ? open : []), ...(backfill?.runId != null ? [backfill.runId] : [])] };
}

/** When a tick is due: its time and its jitter. */
export function fireAt({ name, jitterMs }: Pick<Schedule, "name" | "jitterMs">, tick: number): number {
  return tick + jitterOf(name, tick, jitterMs);
}

/** The row after its run was started, or found, or could not be started. */
export function withStart(
  row: Schedule,
  { tick, by }: TickStart,
  { now, outcome, runId, reason = null }: { now: number; outcome: Outcome; runId: string | null; reason?: string | null },
): Schedule {
  const noted = withTick(row, { at: tick, decidedAt: now, outcome, runId, reason, ...(by === undefined ? {} : { by }) });
  if (by !== "backfill" || noted.backfill === null) {
    if (outcome !== "started" || runId === null) return noted;
    return { ...noted, open: [...noted.open, runId].slice(-openMax) };
  }
  const { backfill } = noted;
  const started = backfill.started + (outcome === "started" ? 1 : 0);
  return { ...noted, backfill: { ...backfill, started, runId: backfill.overlap === "queue" ? runId : null } };
}

export function withTick(row: Schedule, tick: Tick): Schedule {
  return { ...row, history: [tick, ...row.history].slice(0, historyMax) };
}

function dueStep(row: Schedule, nextAt: number, view: StepView): Step {
  const { now, times } = view;
  const { first, missed } = afterMissed(row, nextAt, view);
  const missing = missed === null ? row : withTick(row, { ...missed, decidedAt: now });
  // Everything that is due was missed.
  if (first === null || fireAt(row, first) > now) return { row: { ...missing, nextAt: first, lastAt: nextAt }, start: null };
  return tickStep({ ...missing, nextAt: times.next(row.when, first), lastAt: first }, first, view);
}

type Missed = Omit<Tick, "decidedAt">;

/** The first due tick that may start, and those before it that may not, because they are too old or `catchUp` is `last`. */
function afterMissed(row: Schedule, nextAt: number, { now, times }: StepView): { first: number | null; missed: Missed | null } {
  const { when, catchUp, catchUpMs, jitterMs } = row;
  const oldest = now - catchUpMs - jitterMs;
  let first: number | null = nextAt < oldest ? times.next(when, oldest - 1) : nextAt;
  if (catchUp === "last" && first !== null && first <= now) {
    const sure = now - jitterMs;
    if (sure > first) first = times.last(when, first, sure);
    let looks = 0;
    for (let next = times.next(when, first); next !== null && fireAt(row, next) <= now && looks < looksMax; looks++) {
      first = next;
      next = times.next(when, next);
    }
  }
  if (first === nextAt) return { first, missed: null };
  let count = 1;
  for (let next = times.next(when, nextAt); next !== null && next !== first && count < missedCountMax; count++)
    next = times.next(when, next);
  return { first, missed: { at: nextAt, outcome: "missed", runId: null, reason: "no server was there at its time", count } };
}

/** The outcome of a due tick by the overlap rule. */
function tickStep(row: Schedule, tick: number, { now, isOpen }: StepView): Step {
  const open = row.open.filter(isOpen);
  const pruned = { ...row, open };
  const [running] = open;
  const start = (cancels: readonly string[] = []): Step => ({ row: pruned, start: { tick, cancels } });
  const noted = (outcome: Outcome, reason: string, more: Partial<Schedule> = {}): Step => ({
    row: { ...withTick(pruned, { at: tick, decidedAt: now, outcome, runId: running ?? null, reason }), ...more },
    start: null,
  });
  if (row.overlap === "allow") return start();
  if (row.overlap === "cancel-previous") return start(open);
  const isFree = running === undefined;
  if (row.overlap === "skip") return isFree ? start() : noted("skipped", "a run of an earlier tick is open");
  if (isFree && row.queued.length === 0) return start();
  if (row.queued.length >= row.queueMax) return noted("skipped", `${row.queueMax} ticks wait already`);
  return noted("queued", "a run of an earlier tick is open", { queued: [...row.queued, tick] });
}

/** Starts the oldest waiting tick when no run is open. Ticks that began to wait under another overlap rule start in the same way. */
function queueStep(row: Schedule, { isOpen }: StepView): Step | null {
  const [tick, ...queued] = row.queued;
  if (tick === undefined) return null;
  const open = row.open.filter(isOpen);
  return open.length > 0 ? null : { row: { ...row, open, queued }, start: { tick, cancels: [] } };
}

function backfillStep(row: Schedule, { times, isOpen }: StepView): Step | null {
  const { backfill } = row;
  if (backfill === null || (backfill.runId !== null && isOpen(backfill.runId))) return null;
  if (backfill.nextAt > backfill.to) return { row: { ...row, backfill: null }, start: null };
  const next = times.next(row.when, backfill.nextAt);
  const rest: Backfill = { ...backfill, nextAt: next ?? Number.MAX_SAFE_INTEGER };
  return { row: { ...row, backfill: rest }, start: { tick: backfill.nextAt, cancels: [], by: "backfill" } };
}
