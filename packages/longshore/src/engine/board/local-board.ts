// The board's verbs, in the process that owns the data. Waiting claims are only in memory. Ready queues and limits are in memory, too, and
// rebuilt from the rows of tasks at start. The group commit undoes changes in memory when the write fails.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import type { Verdict } from "../../core/verdict.ts";
import { type Audit, unaudited } from "../audit/local-audit.ts";
import type { Rows } from "../cached-rows.ts";
import type { GroupCommit } from "../commit.ts";
import { type Once, unmarked } from "../request-marks.ts";
import { type RowStore, Taken } from "../rows.ts";
import { Remains } from "../run/remains.ts";
import type { Closure } from "../run/retry.ts";
import type { StoredBytes } from "../stored-bytes.ts";
import { taskRows } from "../tables/task.ts";
import type { Tx } from "../tx.ts";
import { Attempts, type Closing } from "./attempts.ts";
import { HandOuts } from "./hand-outs.ts";
import { Lanes } from "./lanes.ts";
import { Limits } from "./limits.ts";
import { FarDeadlines, waitDeadlines } from "./local-deadlines.ts";
import { LocalExpiry } from "./local-expiry.ts";
import type { Follower } from "./local-follower.ts";
import { endOf, settleWithTurn } from "./local-foreseen.ts";
import { LocalHalts } from "./local-halts.ts";
import { LocalLimits } from "./local-limits.ts";
import { LocalRecovery } from "./local-recovery.ts";
import { type Fenced, LocalRenewals } from "./local-renewals.ts";
import { newTask } from "./new-task.ts";
import { ReadyQueues } from "./ready-queues.ts";
import { keptError, merged } from "./report-texts.ts";
import { RunTasks } from "./run-tasks.ts";
import type {
  BoardStore,
  ClaimRequest,
  Commanded,
  Extending,
  Extension,
  Leave,
  NewTaskRow,
  Report,
  SettledAndClaimed,
  Standing,
} from "./store.ts";
import { cancelledAlone, cell, fence, fenceTurn, type Hold, isDriver, isOpen, isWait, nextDeadline, type TaskRow } from "./task.ts";
import { sequencesAmount, TaskLife } from "./task-life.ts";
import { Unwritten } from "./unwritten-endings.ts";
import { unheard, type WorkListener } from "./work-listener.ts";

/** How long a lane counts as polled after a claim for it. */
const polledMs = 60_000;

export interface LocalBoardDeps {
  store: RowStore;
  commit: GroupCommit;
  /** Default: no request is tracked. */
  performed?: Once;
  /** Default: nothing is noted. */
  audit?: Audit;
  stored: StoredBytes;
  clock: Clock;
  random: () => number;
  /** The lowest grant number of new hand-outs. Default: 0. */
  grantsFrom?: number;
  /** Called for each task that a commit changed. A hint for waiting callers and displays. */
  changed: (task: TaskRow) => void;
  /** The time of the next deadline of `id`; null when it has none. */
  deadline: (id: string, at: number | null) => void;
  /** Default: no one is notified. */
  work?: WorkListener;
}

/** The tasks that a claim received, or a function that cancels its wait. */
interface Claimed {
  tasks: TaskRow[];
  leave: Leave | null;
}

export class LocalBoard implements BoardStore {
  readonly tasks: Rows<TaskRow>;
  readonly lanes: Lanes = new Lanes();
  readonly limits: Limits = new Limits();
  readonly unwritten: Unwritten = new Unwritten();
  /** Rows of removed runs and tasks. */
  readonly remains: Remains;
  /** Counts since this process started, for metrics. */
  readonly counts: Record<"claimed" | Closure["kind"], number> = { claimed: 0, failed: 0, lost: 0, "timed-out": 0 };
  readonly #commit: GroupCommit;
  readonly #performed: Once;
  readonly #clock: Clock;
  readonly #audit: Audit;
  readonly #attempts: Attempts;
  readonly #handOuts: HandOuts;
  #follower: Follower | null = null;
  readonly #queues: ReadyQueues;
  readonly #life: TaskLife;
  readonly #recovery: LocalRecovery;
  readonly #expiry: LocalExpiry;
  readonly #renewals: LocalRenewals;
  readonly halts: LocalHalts;
  /** Deadlines of waits. */
  readonly far: FarDeadlines;
  readonly limitChanges: LocalLimits;
  /** Used by operations that decide about a run. */
  readonly ofRuns: RunTasks;

  constructor(options: LocalBoardDeps) {
    const { work = unheard } = options;
    this.#commit = options.commit;
    this.#performed = options.performed ?? unmarked(options.commit);
    this.#clock = options.clock;
    this.#audit = options.audit ?? unaudited;
    const { store, commit, clock, deadline } = options;
    this.far = new FarDeadlines({ name: "wait", store, commit, clock, sources: waitDeadlines, deadline });
    this.tasks = taskRows(options.store, options.commit, {
      committed: (task) => {
        // Computed for the time of queueing: a delay that ends while its own commit is being written must still fire.
        const next = nextDeadline(task, task.queuedAt);
        if (task.lane === null) this.far.changed(task.id, next);
        else deadline(task.id, next);
        options.changed(task);
      },
      seen: this.unwritten.seen,
    });
    this.#handOuts = new HandOuts(options.store, options.commit);
    this.#queues = new ReadyQueues({
      ...{ tasks: this.tasks, lanes: this.lanes, limits: this.limits, handOuts: this.#handOuts },
      grantsFrom: options.grantsFrom ?? 0,
      deadline: options.deadline,
      handedOut: (task, now) => {
        this.counts.claimed++;
        work.handedOut(task, now);
      },
      giveBack: (taskId, grant) => this.settle({ verb: "defer", hold: { taskId, grant }, delayMs: 0, unseen: true }),
    });
    this.halts = new LocalHalts({
      ...{ store: options.store, commit: options.commit, performed: this.#performed, clock: options.clock },
      ...{ lanes: this.lanes, queues: this.#queues, audit: this.#audit },
    });
    this.limitChanges = new LocalLimits({
      ...{ store: options.store, commit: options.commit, performed: this.#performed, clock: options.clock },
      ...{ limits: this.limits, queues: this.#queues, audit: this.#audit },
    });
    this.#attempts = new Attempts(options.store, options.commit, options.stored);
    this.remains = new Remains(options);
    this.remains.onRemoved.add(() => this.#queues.removed(clock.now()));
    this.#life = new TaskLife({
      ...{ tasks: this.tasks, queues: this.#queues, attempts: this.#attempts, counts: this.counts, remains: this.remains },
      ...{ clock: options.clock, random: options.random, work },
      sequences: options.stored.amounts.of(sequencesAmount),
      runs: () => this.#runs,
    });
    const { tasks, unwritten } = this;
    this.#recovery = new LocalRecovery({
      ...{ store: options.store, commit: options.commit, clock: options.clock, deadline: options.deadline },
      ...{ tasks, queues: this.#queues, limits: this.limits, handOuts: this.#handOuts, life: this.#life },
    });
    this.#renewals = new LocalRenewals({ tasks, commit: options.commit, clock: options.clock, fence: (...args) => this.#fence(...args) });
    this.#expiry = new LocalExpiry({
      ...{ commit: options.commit, clock: options.clock, deadline: options.deadline, limits: this.limits },
      ...{ tasks, queues: this.#queues, life: this.#life },
      runs: () => this.#runs,
    });
    this.ofRuns = new RunTasks({ tasks, unwritten, queues: this.#queues, life: this.#life, clock: options.clock });
  }

  /** The ids of queued tasks that are not due yet. */
  get delayed(): ReadonlySet<string> {
    return this.#queues.delayed;
  }

  follow(follower: Follower): void {
    this.#follower = follower;
  }

  post(tasks: readonly NewTaskRow[]): Promise<void> {
    // Nearly all ids are new, so the store is not read for each id first.
    return this.#commit
      .run((tx) => this.postNow(tx, tasks, (id) => this.tasks.has(tx, id)))
      .catch((error: unknown) => {
        if (!(error instanceof Taken)) throw error;
        return this.#commit.run((tx) => this.postNow(tx, tasks));
      });
  }

  /** A task whose id exists stays unchanged. */
  postNow(tx: Tx, tasks: readonly NewTaskRow[], isThere = (id: string) => this.tasks.get(tx, id) !== null): void {
    const now = this.#clock.now();
    const before = this.lanes.steps;
    for (const task of tasks) if (!isThere(task.id)) this.#life.post(tx, newTask(task, now, this.lanes.choose(task.lanes, now - polledMs)));
    tx.spend(this.lanes.steps - before);
  }

  claim(request: ClaimRequest, standing?: Standing): Promise<Claimed> {
    return this.#commit.run<Claimed>((tx) => {
      const now = this.#clock.now();
      const before = this.lanes.steps;
      const group = this.lanes.group(request.reach, now);
      const tasks: TaskRow[] = [];
      const { holder, termMs, offerMs } = request;
      let task: TaskRow | null | "more" = null;
      while (tasks.length < request.max) {
        task = this.#queues.take(tx, group, now, request.max - tasks.length);
        if (task === null || task === "more") break;
        tasks.push(this.#queues.handOut(tx, task, { holder, termMs, offerMs, now }));
      }
      tx.spend(this.lanes.steps - before);
      if (tasks.length > 0) return { tasks, leave: null };
      if (task === "more") return this.#lookFurther(tx, request, standing);
      return { tasks, leave: standing === undefined ? null : this.#queues.wait(tx, group, request, standing) };
    });
  }

  /**
   * Continues a search in another operation, so that others run in between. It starts only after the commit: an operation that is undone
   * must not leave another one behind.
   */
  #lookFurther(tx: Tx, request: ClaimRequest, standing: Standing | undefined): Promise<Claimed> {
    return new Promise((resolve, reject) => tx.after(() => this.claim(request, standing).then(resolve, reject)));
  }

  extend(hold: Hold, options: Extending = {}): Promise<Extension> {
    return this.#renewals.extend(hold, options);
  }

  settle(report: Report): Promise<Verdict> {
    // Requests of workers are not tracked, because their reports name the hold. A report that names only a run could find another step when
    // it is repeated.
    return this.#performed.once(
      "settle",
      (tx) => this.#settleNow(tx, report),
      () => "again",
    );
  }

  settleAndClaim(report: Report, request: ClaimRequest): Promise<SettledAndClaimed> {
    return this.#performed.once<SettledAndClaimed>(
      "settle",
      (tx) => {
        const now = this.#clock.now();
        const before = this.lanes.steps;
        const group = this.lanes.group(request.reach, now);
        let verdict: Verdict = "gone";
        let tookTurn = false;
        const task = this.#queues.withClaim(tx, group, request, now, () => {
          const foreseen = report.verb === "complete" ? report.turn : undefined;
          if (foreseen === undefined) verdict = this.#settleNow(tx, report);
          else
            ({ verdict, tookTurn } = settleWithTurn(
              tx,
              { tasks: this.tasks, queues: this.#queues, settle: (each) => this.#settleNow(tx, each) },
              report,
              foreseen,
              { ...request, now },
            ));
          return verdict === "ok";
        });
        tx.spend(this.lanes.steps - before);
        return { verdict, task, tookTurn };
      },
      () => ({ verdict: "again", task: null, tookTurn: false }),
    );
  }

  receipt(taskId: string, grant: number): Promise<string | undefined> {
    return this.#commit.read((tx) => {
      const task = this.tasks.get(tx, taskId);
      return (task?.closedGrant === grant ? task.closedReceipt : this.#attempts.closing(tx, taskId, grant)?.receipt) ?? undefined;
    });
  }

  cancelTask(taskId: string): Promise<boolean> {
    return this.#commit.run((tx) => {
      const task = this.tasks.get(tx, taskId);
      if (task === null || !isOpen(task.state) || task.state === "cancelling") return false;
      this.ofRuns.cancelOne(tx, taskId, this.#clock.now(), cancelledAlone);
      if (task.runId !== null) this.#runs.ended(tx, task, "cancelled", null);
      this.#audit.note(tx, { verb: "cancel", kind: "task", target: taskId, was: { state: task.state }, became: { state: "cancelled" } });
      return true;
    });
  }

  withdraw(hold: Hold, why: { error: string; output?: string; by?: string }): Promise<Verdict> {
    return this.#commit.run((tx) => {
      const now = this.#clock.now();
      const task = this.tasks.get(tx, hold.taskId) ?? undefined;
      const fenced = this.#fence(tx, task, { hold, verb: "fail", now });
      if (fenced !== "current" || task === undefined) return fenced as Verdict;
      const error = keptError(why.error);
      const closing: Closing = { now, by: "cancel", receipt: null, holder: why.by };
      const fault = task.state === "cancelling" ? (task.fault ?? undefined) : cancelledAlone;
      this.#life.end(tx, task, "cancelled", closing, { output: why.output ?? task.output, error, fault });
      // A run that cancelled the task itself needs no notice.
      if (task.runId !== null && task.state !== "cancelling") this.#runs.ended(tx, task, "cancelled", error);
      return "ok";
    });
  }

  expire(ids: readonly string[]): Promise<void> {
    return this.#expiry.expire(ids);
  }

  task(taskId: string): Promise<TaskRow | undefined> {
    return this.#commit.read((tx) => this.tasks.get(tx, taskId) ?? undefined);
  }

  async recover(): Promise<void> {
    await this.remains.recover();
    await this.halts.recover();
    await this.limitChanges.recover();
    await this.#recovery.run();
  }

  get #runs(): Follower {
    if (this.#follower === null) throw new Error("The board has no follower yet.");
    return this.#follower;
  }

  /** Refuses reports of workers on a step that waits, unless the plan allows them. */
  #fence(tx: Tx, task: TaskRow | undefined, { hold, verb, now, closedBy = () => null }: Fenced): Verdict | "current" {
    const fenced = fence(task, hold, verb, now, closedBy);
    return fenced === "current" && task !== undefined && isWait(task) && !this.#runs.takesReports(tx, task) ? "stale" : fenced;
  }

  #settleNow(tx: Tx, report: Report): Verdict {
    const { verb } = report;
    const now = this.#clock.now();
    const found = this.tasks.get(tx, report.hold.taskId) ?? undefined;
    // A worker that reports on an offer has worked on it since it was handed out.
    const task = found?.state === "offered" && verb !== "defer" ? { ...found, startedAt: found.startedAt ?? found.claimedAt } : found;
    const closedBy = (grant: number) =>
      task?.closedGrant === grant ? task.closedBy : (this.#attempts.closing(tx, report.hold.taskId, grant)?.by ?? null);
    const fenced = this.#fence(tx, task, { hold: report.hold, verb, now, closedBy });
    if (fenced !== "current" || task === undefined) return fenced as Verdict;
    const next = cell(task.state, verb);
    if (next === null) return "stale";
    // Only the worker that has the turn of a durable function may report on it.
    if (task.state === "queued" && isDriver(task)) return "stale";
    if (verb === "defer" && report.unlessTaken && task.state !== "offered") return "busy";
    const at = verb === "complete" ? endOf(task, report.turn, now) : now;
    const closing: Closing = { now: at, by: verb, receipt: (verb === "defer" ? undefined : report.receipt) ?? null, holder: report.by };
    if (next.to === "cancelled") {
      const output = verb === "complete" ? report.output : task.output;
      const error = verb === "fail" ? keptError(report.error) : null;
      this.#life.end(tx, task, "cancelled", closing, { output, error, fault: task.fault ?? undefined });
    } else if (verb === "complete" && isDriver(task)) this.#endTurn(tx, task, report.output, closing);
    else if (verb === "complete") {
      const done = this.#life.end(tx, task, "done", closing, { output: merged(task, report), error: null });
      if (done.runId !== null) this.#runs.done(tx, done);
    } else if (verb === "defer") {
      const due = isDriver(task) ? { ...task, input: this.#runs.turnAgain(tx, task) } : task;
      this.#life.defer(tx, due, report, closing);
    } else {
      const { retryable, spends, delayMs, output = task.output } = report;
      this.#life.close(tx, { ...task, output }, closing, { kind: "failed", error: keptError(report.error), retryable, spends, delayMs });
    }
    return next.verdict;
  }

  /** A report that cannot be read ends the function: the next worker with the same code would send the same. */
  #endTurn(tx: Tx, task: TaskRow, report: string, closing: Closing): void {
    this.#life.park(tx, task, closing);
    const { refused } = this.#runs.turned(tx, task, report, true);
    if (refused !== null) this.#life.close(tx, task, closing, { kind: "failed", error: keptError(refused), retryable: false });
  }

  /** Adds commands in the middle of a turn; the turn continues. */
  command(hold: Hold, report: string): Promise<Commanded> {
    return this.#commit.run((tx): Commanded => {
      const task = this.tasks.get(tx, hold.taskId) ?? undefined;
      const fenced = fenceTurn(task, hold, this.#clock.now());
      if (fenced !== "current" || task === undefined) return { verdict: fenced as Verdict, news: null };
      if (task.state === "cancelling") return { verdict: "cancel", news: null };
      const { refused, news } = this.#runs.turned(tx, task, report, false);
      if (refused !== null) throw new LongshoreError("LONGSHORE_BAD_INPUT", refused);
      return { verdict: "ok", news };
    });
  }
}
