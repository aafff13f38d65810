// Computes which steps of a run start again when it is retried, and the counters of the other steps. Pure, and in slices: a run may have
// thousands of steps.

import { eachInSlices, type Sliced, sliceItems } from "../../core/slices/slice-work.ts";
import { isCancelled, type TaskRow } from "../board/task.ts";
import type { Counter } from "./joins.ts";
import { countsAlways, namedBy, type Plan, type PlanNode, requiredOf } from "./plan.ts";
import type { Skips } from "./skips.ts";

export interface RestartPlan {
  /** Every node that has to end again. */
  all: ReadonlySet<number>;
  /** The nodes to start, in order. */
  start: number[];
  /** Nodes whose records are void. */
  forget: number[];
  /** Records that wait again, as they did before. */
  reopen: number[];
  joins: Map<number, Counter>;
  /**
   * Steps that wait for their child runs again, although their run has already continued with the steps after them. Of these later steps,
   * those that have ended keep their results.
   */
  passed: ReadonlySet<number>;
  /** Steps that keep a failure after which their run continued. */
  permitted: number[];
}

export interface RestartOptions {
  /** Also restart this step, in any state. */
  from?: number;
  /** This step's child run has begun another life: the step waits for it, and is not started. */
  reopen?: number;
  /** Steps that were skipped by order stay skipped. */
  skips: Pick<Skips, "has" | "isReached" | "text">;
  /** In a lazy plan: the nodes that another node had demanded before. */
  begun: ReadonlySet<number>;
  /** Nodes whose turn had come when the run ended, and which had not begun yet. */
  due: ReadonlySet<number>;
}

/** A key that distinguishes plans with different options. */
export function restartKey({ from, reopen, skips, begun, due }: RestartOptions): string {
  return JSON.stringify([from, reopen, skips.text, [...begun], [...due]]);
}

export function* planRestart(plan: Plan, records: ReadonlyMap<number, TaskRow>, options: RestartOptions): Sliced<RestartPlan> {
  const { starters } = plan;
  const { due } = options;
  const hasRecord = (at: number) => records.has(at) && records.get(at)?.state !== "forgotten";
  const lives = (at: number) => due.has(at) || hadItsTurn(records, options, at);
  const permitted = permittedBefore(plan, records, options.from ?? options.reopen);
  const behind = yield* behindStep(plan, options.from);
  const { all, passed } = yield* everythingAgain(plan, records, options, { permitted: new Set(permitted), behind });
  const following = yield* behindStep(plan, options.from, all);
  const wanted = plan.lazy ? yield* wantedAgain(plan, all, options) : null;
  // A node that had chosen a branch and is not wanted yet starts again, too. The nodes before it are chosen again, or are not wanted any
  // more. So the node chooses only when it is wanted again, and until then the nodes that it had chosen wait.
  if (wanted !== null)
    yield* eachInSlices(plan.nodes, (node, at) => {
      if (node.kind === "instant" && node.choice !== undefined && hasRecord(at) && !wanted.has(at)) all.add(at);
    });
  const again: RestartPlan = { all, start: [], forget: [], reopen: [], joins: new Map(), passed, permitted };
  let worked = 0;
  for (const at of all) {
    if (++worked % sliceItems === 0) yield;
    const node = plan.nodes[at] as PlanNode;
    const startedBy = starters.get(at) ?? [];
    // The record of a step that is skipped by order stays valid.
    const isVoid = hasRecord(at) && !options.skips.has(at);
    const kept = node.after.filter((upstream) => !all.has(upstream) || (passed.has(upstream) && node.kind !== "join")).length;
    const left = Math.max(requiredOf(node) - kept, 0);
    const begun = lives(at) && !startedBy.some((starter) => all.has(starter));
    if (node.kind === "join") {
      const waits = begun && isVoid;
      again.joins.set(at, { left, begun: waits, missed: 0 });
      if (waits) again.reopen.push(at);
      else if (begun) again.start.push(at);
      else if (isVoid) again.forget.push(at);
      continue;
    }
    if (at === options.reopen) {
      // Nodes before it that start again must not start it while its child run is running.
      again.joins.set(at, { left: -1, begun: true, missed: 0 });
      again.reopen.push(at);
      continue;
    }
    const lazy = wanted !== null && node.demanded === true && node.waitsFor !== "any";
    const ready = lazy
      ? wanted.has(at) && left === 0
      : startsNow(plan, at, { all, startedBy, left, lives, passed, following, from: options.from });
    if ((countsAlways(node) || lazy) && node.waitsFor !== "any")
      again.joins.set(at, { left: ready ? -1 : left, begun: lazy && wanted.has(at), missed: 0 });
    if (ready) again.start.push(at);
    // A step with a result begins as if it had never been tried. A step without a result is tried again.
    if (isVoid && (!ready || (node.kind === "task" && records.get(at)?.state === "done"))) again.forget.push(at);
  }
  // A join that waits for nothing would never end, so it is evaluated as if it had just started.
  const over = again.reopen.filter((node) => again.joins.get(node)?.left === 0);
  if (over.length > 0) again.reopen = again.reopen.filter((node) => again.joins.get(node)?.left !== 0);
  for (const at of over) {
    again.joins.set(at, { left: 0, begun: false, missed: 0 });
    again.start.push(at);
  }
  return again;
}

/**
 * Steps that wait for their child runs again, although their run has already continued with the steps after them. Later steps that have
 * ended keep their results. Only nodes that wait for several steps wait for these steps again.
 */
function passedSteps(plan: Plan, records: ReadonlyMap<number, TaskRow>, { from, reopen }: RestartOptions): ReadonlySet<number> {
  const isPassed = (at: number, { state, streamed }: TaskRow) => (at === reopen && state === "done") || (streamed && state !== "done");
  const isChild = (at: number) => at !== from && plan.nodes[at]?.kind === "run";
  return new Set([...records].filter(([at, record]) => isChild(at) && isPassed(at, record)).map(([at]) => at));
}

/** A step that was skipped by order has a record before the run reaches it. */
function hadItsTurn(records: ReadonlyMap<number, TaskRow>, { skips }: RestartOptions, at: number): boolean {
  const record = records.get(at);
  return record !== undefined && record.state !== "forgotten" && (!skips.has(at) || skips.isReached(at));
}

/**
 * The nodes that are wanted in the next life of a lazy plan before any node has chosen again: nodes that are always wanted, nodes chosen by
 * a node that keeps its choice, the step that the caller named, and all that these demand.
 */
function* wantedAgain(plan: Plan, all: ReadonlySet<number>, options: RestartOptions): Sliced<ReadonlySet<number>> {
  const wanted = new Set<number>();
  yield* eachInSlices(plan.nodes, (node, at) => {
    if (!node.demanded || at === options.from) wanted.add(at);
  });
  let walked = 0;
  // The loop also visits nodes that are added on the way.
  for (const at of wanted) {
    if (++walked % sliceItems === 0) yield;
    const node = plan.nodes[at] as PlanNode;
    for (const demanded of node.demands ?? []) wanted.add(demanded);
    if (!all.has(at)) for (const chosen of namedBy(node)) if (options.begun.has(chosen)) wanted.add(chosen);
  }
  return wanted;
}

/** Steps without a result, and all steps after them: their inputs may change. */
function* everythingAgain(
  plan: Plan,
  records: ReadonlyMap<number, TaskRow>,
  options: RestartOptions,
  { permitted, behind }: { permitted: ReadonlySet<number>; behind: ReadonlySet<number> },
  passed: ReadonlySet<number> = passedSteps(plan, records, options),
): Sliced<{ all: Set<number>; passed: ReadonlySet<number> }> {
  const lives = (at: number) => options.due.has(at) || hadItsTurn(records, options, at);
  const again = new Set<number>();
  yield* eachInSlices(plan.nodes, (node, at) => {
    const state = records.get(at)?.state;
    const tolerated = node.onFailure === "tolerate" && endedAlone(records.get(at));
    // An end node that was reached also ends the next life.
    const done = state === "done" && node.kind !== "end";
    const accepted = done || tolerated || permitted.has(at) || options.skips.isReached(at);
    if (!accepted || at === options.from || at === options.reopen) again.add(at);
  });
  const repeats = (at: number) => again.has(at) && !passed.has(at);
  // The loop also visits nodes that are added on the way.
  let walked = 0;
  for (const at of again) {
    if (++walked % sliceItems === 0) yield;
    // A branch that the last life has not reached gives no information about the nodes behind it.
    if (!lives(at) && plan.nodes[at]?.demanded) continue;
    for (const next of nextOf(plan, at)) {
      if (passed.has(at) && (plan.nodes[next]?.kind !== "join" || records.get(next)?.state === "done")) continue;
      if (isEndedJoin(plan, records, next) && !hasSettled(plan, records, options, at)) continue;
      // The run has passed a skipped step without the steps that were skipped with it.
      if (options.skips.isReached(next) && !lives(at)) continue;
      const reachedAgain = at === options.from || (behind.has(next) && plan.nodes[next]?.waitsFor === "any");
      if (reachedAgain || !isAcceptedElsewhere(plan, records, options, next, repeats)) again.add(next);
    }
  }
  // When a passed step starts again because of steps before it, everything after it starts again too. The exception is a branch that was
  // not chosen before and is not chosen again.
  const comes = (at: number) => repeats(at) && comesAgain(plan, at, { all: again, lives });
  const still = new Set([...passed].filter((at) => !leadingTo(plan, at).some(comes)));
  return still.size === passed.size ? { all: again, passed } : yield* everythingAgain(plan, records, options, { permitted, behind }, still);
}

/**
 * Every node that the step leads to; with `among`, through these nodes alone. The step may be in a branch that was not chosen, so another branch may have
 * led there before.
 */
function* behindStep(plan: Plan, step: number | undefined, among?: ReadonlySet<number>): Sliced<ReadonlySet<number>> {
  const behind = new Set<number>(step === undefined ? [] : nextOf(plan, step));
  let walked = 0;
  // The loop also visits nodes that are added on the way.
  for (const at of behind) {
    if (++walked % sliceItems === 0) yield;
    if (among === undefined || among.has(at)) for (const next of nextOf(plan, at)) behind.add(next);
  }
  return behind;
}

/**
 * Failures after which the run continued to a step that now continues by itself. They are kept, because retrying them would reach that step
 * a second time.
 */
function permittedBefore(plan: Plan, records: ReadonlyMap<number, TaskRow>, step: number | undefined): number[] {
  const before = new Set<number>(step === undefined ? [] : leadingTo(plan, step));
  // The loop also visits nodes that are added on the way.
  for (const at of before) for (const earlier of leadingTo(plan, at)) before.add(earlier);
  return [...before].filter((at) => plan.nodes[at]?.onFailure === "permit" && endedAlone(records.get(at)));
}

/** A report has ended the join before all its upstreams had settled: it does not wait for the others again. */
function isEndedJoin(plan: Plan, records: ReadonlyMap<number, TaskRow>, at: number): boolean {
  return plan.nodes[at]?.kind === "join" && records.get(at)?.state === "done";
}

/** The run continued behind the step: a join that is done may have waited for it. */
function hasSettled(plan: Plan, records: ReadonlyMap<number, TaskRow>, { skips }: RestartOptions, at: number): boolean {
  const record = records.get(at);
  if (skips.has(at)) return skips.isReached(at);
  if (endedAlone(record)) return plan.nodes[at]?.onFailure !== "end";
  return record?.state === "done" || record?.state === "skipped";
}

/** The step failed, or was cancelled alone and not along with its run: the run decided whether to continue without it. */
function endedAlone(record: TaskRow | undefined): boolean {
  if (record?.state === "failed") return true;
  return record !== undefined && isCancelled(record) && record.fault !== null;
}

function leadingTo(plan: Plan, at: number): readonly number[] {
  return [...(plan.nodes[at]?.after ?? []), ...(plan.starters.get(at) ?? [])];
}

/** A node with a threshold starts again only when too few of its upstreams keep their results. */
function isAcceptedElsewhere(
  plan: Plan,
  records: ReadonlyMap<number, TaskRow>,
  options: RestartOptions,
  at: number,
  repeats: (at: number) => boolean,
): boolean {
  const node = plan.nodes[at] as PlanNode;
  if (records.get(at)?.state !== "done") return false;
  if (node.waitsFor !== "any") return node.threshold !== undefined && isReached(node, repeats);
  const lives = (other: number) => hadItsTurn(records, options, other);
  return node.after.some((upstream) => lives(upstream) && !repeats(upstream) && leadsTo(plan, upstream, at, lives));
}

/** A node that chose a branch leads to the nodes behind the branches only through that branch. */
function leadsTo(plan: Plan, at: number, next: number, lives: (at: number) => boolean): boolean {
  const node = plan.nodes[at] as PlanNode;
  if (node.kind !== "instant" || node.choice === undefined) return true;
  const { cases, otherwise } = node.choice;
  return ![...[...cases.values()].flat(), ...otherwise].some((branch) => branch !== next && lives(branch));
}

/** Upstreams that do not start again count as settled. */
function isReached(node: PlanNode, repeats: (at: number) => boolean): boolean {
  return node.after.filter((upstream) => !repeats(upstream)).length >= requiredOf(node);
}

interface Surroundings {
  all: ReadonlySet<number>;
  startedBy: readonly number[];
  left: number;
  lives: (at: number) => boolean;
  passed: ReadonlySet<number>;
  /** Nodes that the step `from` leads to through nodes that start again. */
  following: ReadonlySet<number>;
  from: number | undefined;
}

function startsNow(plan: Plan, at: number, known: Surroundings): boolean {
  const node = plan.nodes[at] as PlanNode;
  // The step that the caller names waits for the nodes before it that start again, because it reads their results.
  if (at === known.from) {
    const comes = (upstream: number) => comesAgain(plan, upstream, known);
    if (known.startedBy.some(comes)) return false;
    return (node.waitsFor !== "any" && known.left === 0) || !node.after.some(comes);
  }
  const root = node.after.length === 0 && !node.demanded;
  if (!root && node.demanded && !known.lives(at)) return false;
  const isKept = (upstream: number) => known.lives(upstream) && (!known.all.has(upstream) || known.passed.has(upstream));
  if (node.waitsFor === "any")
    return (
      known.lives(at) &&
      !known.following.has(at) &&
      (node.after.some((upstream) => isKept(upstream) && leadsTo(plan, upstream, at, known.lives)) || known.startedBy.some(isKept))
    );
  return known.left === 0 && !known.startedBy.some((starter) => known.all.has(starter));
}

/** The node starts again, or a node that leads to it does. False for a node in a branch that is not chosen, neither before nor now. */
function comesAgain(plan: Plan, at: number, { all, lives }: Pick<Surroundings, "all" | "lives">): boolean {
  const leading = new Set([at]);
  // The loop also visits nodes that are added on the way.
  for (const node of leading) {
    if (!all.has(node)) continue;
    if (lives(node) || leadingTo(plan, node).length === 0) return true;
    for (const earlier of leadingTo(plan, node)) leading.add(earlier);
  }
  return false;
}

function nextOf(plan: Plan, at: number): number[] {
  return [...(plan.dependents[at] ?? []), ...namedBy(plan.nodes[at] as PlanNode)];
}
