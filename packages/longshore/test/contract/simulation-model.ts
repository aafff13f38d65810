// The promises of the server to its clients, and what must therefore never happen. Every answer is checked here, and a broken promise throws.

import type { Verdict } from "../../src/core/verdict.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import type { Run } from "../../src/engine/run/run.ts";

export interface KnownHold {
  readonly taskId: string;
  readonly runId: string | null;
  readonly grant: number;
  /** Null for an offer that was not accepted. */
  holder: string | null;
  /** The step in which its holder was notified of it. */
  readonly toldIn: number;
  /** Until when the holder may rely on it, according to its answers. Extends never move it beyond `bound`. */
  until: number;
  bound: number;
  /** The maximum duration of the attempt from when an offer is accepted; null when it has begun before. */
  endMs: number | null;
  /** When its term ends, according to its holder's answers. */
  termEnd: number;
  /** Nothing has happened that could end it: no report with an unknown outcome, no cancel. */
  sure: boolean;
  /** The server may let it last longer than its holder was told: after a restart, or when the answer to an extend was lost. */
  stretched: boolean;
  /** A completion was sent with it that was accepted or whose outcome is unknown. */
  maybeCompleted: boolean;
}

interface KnownTask {
  /** All holds that were ever reported, oldest first. */
  readonly holds: KnownHold[];
  /** The accepted completion of this life of its run. */
  accepted: { grant: number; output: string } | null;
  /** The step in which a cancel of it was acknowledged, unless it may have been started again since. */
  cancelledIn: number | null;
}

interface KnownRun {
  /** Its acknowledged end, and the step of the simulation; null when it may continue. */
  ended: { state: Run["state"]; step: number } | null;
}

export type Verb = "complete" | "fail" | "defer";

export class Model {
  readonly tasks = new Map<string, KnownTask>();
  readonly runs = new Map<string, KnownRun>();
  /** Times of hand-outs under keys with a rate; a restart does not empty the windows. */
  readonly rates = new Map<string, number[]>();
  /** Whether a client has cancelled the task, directly or with its run: then its holder may be refused. */
  readonly #isUnwanted: (taskId: string) => boolean;
  /** Runs that orders in progress may start again, with how many such orders. */
  readonly #ordered = new Map<string, number>();
  /** The newest life of each child that began another one. */
  readonly #lives = new Map<string, number>();
  #step = 0;

  constructor(isUnwanted: (taskId: string) => boolean) {
    this.#isUnwanted = isUnwanted;
  }

  nextStep(): void {
    this.#step++;
  }

  posted(taskId: string): void {
    this.#task(taskId);
  }

  started(runId: string): void {
    if (!this.runs.has(runId)) this.runs.set(runId, { ended: null });
  }

  /** A claim or an offer was answered with this task. */
  handedOut(task: TaskRow): KnownHold {
    const known = this.#task(task.id);
    const claimedAt = task.claimedAt ?? Number.NaN;
    if (claimedAt < task.dueAt) throw broken(`${task.id} was handed out at ${claimedAt}, before it was due at ${task.dueAt}`);
    const newest = known.holds.at(-1);
    const run = task.runId === null ? undefined : this.runs.get(task.runId);
    if (newest !== undefined && task.grant <= newest.grant)
      throw broken(`grant ${task.grant} of ${task.id} came after grant ${newest.grant}`);
    for (const hold of known.holds) {
      if (hold.sure && claimedAt < hold.until)
        throw broken(`${task.id} was handed out at ${claimedAt} while grant ${hold.grant} was live until ${hold.until}`);
    }
    if (known.accepted !== null) throw broken(`${task.id} was handed out after grant ${known.accepted.grant} had completed it`);
    if (known.cancelledIn !== null && known.cancelledIn < this.#step)
      throw broken(`${task.id} was handed out after its cancel was acknowledged`);
    if (run?.ended != null && run.ended.step < this.#step)
      throw broken(`${task.id} was handed out after its run was said to be ${run.ended.state}`);
    const bound = Math.min(task.endBy ?? Number.POSITIVE_INFINITY, task.totalBy ?? Number.POSITIVE_INFINITY);
    // An offer that no worker takes in time ends with the time to be taken.
    const claimBy = task.state === "offered" ? (task.claimBy ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY;
    const until = Math.min(task.holdUntil ?? Number.NaN, bound, claimBy);
    const { id: taskId, runId, grant, holder } = task;
    const hold: KnownHold = {
      taskId,
      runId,
      grant,
      holder,
      toldIn: this.#step,
      until,
      bound,
      endMs: task.endBy === null ? task.endMs : null,
      termEnd: task.holdUntil ?? Number.NaN,
      sure: true,
      stretched: false,
      maybeCompleted: false,
    };
    known.holds.push(hold);
    return hold;
  }

  extended(hold: KnownHold, verdict: Verdict, holdUntil: number | null, now: number): void {
    if (verdict === "ok") {
      this.#inTime(hold, "extend", now);
      hold.termEnd = holdUntil ?? Number.NaN;
      if (hold.endMs !== null) hold.bound = Math.min(hold.bound, now + hold.endMs);
      hold.endMs = null;
      hold.until = Math.min(hold.termEnd, hold.bound);
      hold.stretched = false;
    } else if (verdict !== "cancel") this.#refused(hold, "extend", verdict, now);
  }

  /** The answer to an extend was lost: the hold may last longer, and the attempt may have begun. */
  maybeExtended(hold: KnownHold, now: number): void {
    hold.stretched = true;
    if (hold.endMs !== null) hold.bound = Math.min(hold.bound, now + hold.endMs);
    hold.until = Math.min(hold.until, hold.bound);
  }

  reported(hold: KnownHold, verb: Verb, verdict: Verdict, output: string, now: number): void {
    const known = this.#task(hold.taskId);
    if (verdict === "ok") {
      this.#inTime(hold, verb, now);
      const newest = known.holds.at(-1);
      // Another worker may hold a returned task in the same commit, and may get its answer first.
      const passedOn = verb !== "complete" && newest?.toldIn === this.#step;
      if (newest !== hold && !passedOn)
        throw broken(`${verb} of ${hold.taskId} was accepted with grant ${hold.grant}, but grant ${newest?.grant} was newer`);
      if (verb === "complete") {
        if (known.accepted !== null)
          throw broken(`${hold.taskId} was completed twice, with grants ${known.accepted.grant} and ${hold.grant}`);
        known.accepted = { grant: hold.grant, output };
      }
    } else if (verdict === "again") {
      if (verb === "complete" && !hold.maybeCompleted)
        throw broken(`complete of ${hold.taskId} was answered again, but was never sent before`);
    } else if (verdict !== "cancel") this.#refused(hold, verb, verdict, now);
    if (verb === "complete" && (verdict === "ok" || verdict === "again")) hold.maybeCompleted = true;
    hold.sure = false;
  }

  /** Every hold that is live on the disk was promised a full term from now on. */
  restarted(now: number, isLive: (hold: KnownHold) => boolean, termMs: number): void {
    for (const hold of this.#holds()) {
      hold.stretched = true;
      if (hold.sure && isLive(hold)) hold.until = Math.max(hold.until, Math.min(now + termMs, hold.bound));
    }
  }

  /** The answer was lost, so the outcome is unknown. */
  unknown(hold: KnownHold, verb: Verb): void {
    hold.sure = false;
    if (verb === "complete") hold.maybeCompleted = true;
  }

  /** A client may have cancelled the task, or its run. */
  maybeCancelled(match: { taskId?: string; runId?: string }): void {
    for (const hold of this.#holds())
      if (hold.taskId === match.taskId || (match.runId !== undefined && hold.runId === match.runId)) hold.sure = false;
  }

  /** `life`: that of its run when the cancel was sent. */
  taskCancelled(taskId: string, life: number): void {
    const runId = runOf(taskId);
    if ((this.#ordered.get(runId) ?? 0) > 0 || life < this.lifeOf(runId)) return;
    this.#task(taskId).cancelledIn = this.#step;
  }

  /** An order to start these runs again is sent. The returned function is called when it is answered. */
  ordered(runIds: readonly string[]): () => void {
    const add = (by: number) => {
      for (const id of runIds) this.#ordered.set(id, (this.#ordered.get(id) ?? 0) + by);
    };
    add(1);
    return () => add(-1);
  }

  runTold(run: Run): void {
    const known = this.runs.get(run.id);
    // An answer about the earlier life promises nothing while an order to start the run again is in progress.
    if (known === undefined || (this.#ordered.get(run.id) ?? 0) > 0 || run.retries < this.lifeOf(run.id)) return;
    if (run.state !== "running") known.ended ??= { state: run.state, step: this.#step };
  }

  /** A child continues with its parent: what was promised about its earlier life is void, also in answers that are still to come. */
  revived({ id, retries }: Run): void {
    this.#lives.set(id, retries);
    if (this.runs.has(id)) this.maybeRetried(id);
    else this.#forgetTasks(id);
  }

  lifeOf(runId: string): number {
    return this.#lives.get(runId) ?? 0;
  }

  /** The run may have been started again: what was promised about its earlier life is void. */
  maybeRetried(runId: string): void {
    this.runs.set(runId, { ended: null });
    this.#forgetTasks(runId);
  }

  #forgetTasks(runId: string): void {
    for (const [taskId, known] of this.tasks) {
      if (!taskId.startsWith(`${runId}.`)) continue;
      known.accepted = null;
      known.cancelledIn = null;
      for (const hold of known.holds) hold.sure = false;
    }
  }

  /** Compares the store with what was acknowledged. */
  compare(task: (id: string) => TaskRow | null, run: (id: string) => Run | null): void {
    for (const [id, known] of this.runs) {
      const stored = run(id);
      if (stored === null) throw broken(`run ${id} was acknowledged and is gone`);
      if (known.ended !== null && stored.state !== known.ended.state)
        throw broken(`run ${id} was said to be ${known.ended.state} and is ${stored.state}`);
    }
    for (const [id, known] of this.tasks) {
      const stored = task(id);
      if (stored === null) throw broken(`task ${id} was acknowledged and is gone`);
      if (known.accepted !== null && (stored.state !== "done" || stored.output !== known.accepted.output))
        throw broken(`${id} was completed with ${known.accepted.output} and is ${stored.state} with ${stored.output}`);
    }
  }

  /** A hand-out under keys with a rate, as the commit reports it. */
  countRate(task: TaskRow): void {
    for (const { key, rate } of task.limits) {
      if (rate === undefined || task.claimedAt === null) continue;
      const times = this.rates.get(key) ?? [];
      times.push(task.claimedAt);
      this.rates.set(key, times);
      const first = times.at(-1 - rate.count);
      if (first !== undefined && task.claimedAt - first < rate.windowMs)
        throw broken(`${key} was handed out ${rate.count + 1} times within its window`);
    }
  }

  #refused(hold: KnownHold, verb: string, verdict: Verdict, now: number): void {
    if (hold.sure && now < hold.until && !this.#isUnwanted(hold.taskId))
      throw broken(`${verb} of ${hold.taskId} was answered ${verdict}, but grant ${hold.grant} is live until ${hold.until}`);
  }

  #inTime(hold: KnownHold, verb: string, now: number): void {
    if (!hold.stretched && now >= hold.termEnd)
      throw broken(`${verb} of ${hold.taskId} was accepted at ${now}, but grant ${hold.grant} had ended at ${hold.termEnd}`);
  }

  #task(id: string): KnownTask {
    let known = this.tasks.get(id);
    if (known === undefined) {
      known = { holds: [], accepted: null, cancelledIn: null };
      this.tasks.set(id, known);
    }
    return known;
  }

  *#holds(): Generator<KnownHold> {
    for (const { holds } of this.tasks.values()) yield* holds;
  }
}

/** The id of the run that a task belongs to. */
export function runOf(taskId: string): string {
  return taskId.slice(0, taskId.lastIndexOf("."));
}

export class BrokenPromise extends Error {}

export function broken(what: string): BrokenPromise {
  return new BrokenPromise(what);
}
