// The board's verbs on SQLite. Ready queues, waiting claims and limits live in memory and are rebuilt at start; a task's row is the
// truth. Every change goes through the group commit, which takes memory back when the write fails.

import { freshTask } from "../../board/fresh-task.ts";
import { Lanes } from "../../board/lanes.ts";
import { Limits } from "../../board/limits.ts";
import type { BoardStore, ClaimRequest, Extension, Leave, NewTask, Report, Standing } from "../../board/store.ts";
import { cell, type EndState, fence, type Hold, isOpen, nextDeadline, passedDeadline, type Task, type Verb } from "../../board/task.ts";
import type { Clock } from "../../clock.ts";
import { LongshoreError } from "../../errors.ts";
import type { RetryPolicy } from "../../run/plan.ts";
import { type Closure, type NextTry, nextTry, noRetry } from "../../run/retry.ts";
import type { Verdict } from "../../verdict.ts";
import type { GroupCommit } from "./commit.ts";
import type { Database } from "./driver.ts";
import { Lines, placeOf } from "./lines.ts";
import { Additions, type Rows } from "./rows.ts";
import { taskColumns, taskOf, taskRows } from "./task-rows.ts";

/** What a settled task means for its run; implemented by the run store, called inside the same operation. */
export interface Follower {
  done(task: Task): void;
  closed(task: Task, closure: Closure): NextTry;
  ended(task: Task, state: EndState, error: string | null): void;
  /** A record on no lane has ended by itself: whatever it stands for should stop too. */
  abandoned(task: Task): void;
  expireRun(runId: string): void;
}

/** How long a lane counts as polled after a claim asked for it. */
const polledMs = 60_000;
/** Deadlines of runs share the heap with those of tasks. */
export const runDeadlinePrefix = "run:";

export interface SqliteBoardOptions {
  db: Database;
  commit: GroupCommit;
  clock: Clock;
  random: () => number;
  /** Told about each task that a commit changed. A hint for whoever waits or shows. */
  changed: (task: Task) => void;
  /** When something next happens to `id` by itself; null for never again. */
  deadline: (id: string, at: number | null) => void;
}

interface Attempt {
  task: Task;
  closedBy: Verb;
  error: string | null;
  endedAt: number;
}

export class SqliteBoard implements BoardStore {
  readonly tasks: Rows<Task>;
  readonly lanes: Lanes = new Lanes();
  readonly limits: Limits = new Limits();
  /** What has happened since this process started, for people who watch. */
  readonly counts: Record<"claimed" | Closure["kind"], number> = { claimed: 0, failed: 0, lost: 0, "timed-out": 0 };
  readonly #db: Database;
  readonly #commit: GroupCommit;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #deadline: SqliteBoardOptions["deadline"];
  readonly #attempts: Additions<Attempt>;
  readonly #pastClosing: (taskId: string, grant: number) => Verb | null;
  #follower: Follower | null = null;
  readonly #lines: Lines;
  #sequence = 0;

  constructor(options: SqliteBoardOptions) {
    this.#db = options.db;
    this.#commit = options.commit;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#deadline = options.deadline;
    this.tasks = taskRows(options.db, options.commit, (task) => {
      // As seen when it was queued: a delay that ends while its own commit is being written must still be noticed.
      options.deadline(task.id, nextDeadline(task, task.queuedAt));
      options.changed(task);
    });
    this.#lines = new Lines({
      ...{ tasks: this.tasks, lanes: this.lanes, limits: this.limits },
      ...{ commit: options.commit, deadline: options.deadline },
      handedOut: () => this.counts.claimed++,
      giveBack: (taskId, grant) => this.settle({ verb: "defer", hold: { taskId, grant }, delayMs: 0, unseen: true }),
    });
    const insert = options.db.prepare(
      "INSERT INTO attempt (task_id, grant_count, attempt, closed_by, holder, error, queued_at, started_at, ended_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    );
    this.#attempts = new Additions(options.commit, ({ task, closedBy, error, endedAt }) => {
      insert.run(task.id, task.grant, task.attempt, closedBy, task.holder, error, task.queuedAt, task.startedAt, endedAt);
    });
    const past = options.db.prepare("SELECT closed_by FROM attempt WHERE task_id = ? AND grant_count = ? ORDER BY attempt DESC LIMIT 1");
    this.#pastClosing = (taskId, grant) => (past.get(taskId, grant)?.closed_by as Verb | undefined) ?? null;
  }

  follow(follower: Follower): void {
    this.#follower = follower;
  }

  post(tasks: readonly NewTask[]): Promise<void> {
    return this.#commit.run(() => {
      const now = this.#clock.now();
      for (const task of tasks) this.place(freshTask(task, now, this.lanes.choose(task.lanes, now - polledMs)), false);
    });
  }

  claim(request: ClaimRequest, standing?: Standing): Promise<{ tasks: Task[]; leave: Leave | null }> {
    return this.#commit.run(() => {
      const now = this.#clock.now();
      const group = this.lanes.group(request.reach, now);
      const tasks: Task[] = [];
      while (tasks.length < request.max) {
        const task = this.#lines.take(group.lanes, now);
        if (task === null) break;
        tasks.push(this.#lines.handOut(task, { state: "held", holder: request.holder, termMs: request.termMs, now }));
      }
      if (tasks.length > 0 || standing === undefined) return { tasks, leave: null };
      return { tasks, leave: this.#lines.wait(group, request, standing) };
    });
  }

  offer(request: Omit<ClaimRequest, "holder">): Promise<Task[]> {
    return this.#commit.run(() => {
      const now = this.#clock.now();
      const { lanes } = this.lanes.group(request.reach, now);
      const tasks: Task[] = [];
      while (tasks.length < request.max) {
        const task = this.#lines.take(lanes, now);
        if (task === null) break;
        tasks.push(this.#lines.handOut(task, { state: "offered", holder: null, termMs: request.termMs, now }));
      }
      return tasks;
    });
  }

  extend(hold: Hold, options: { part?: string; holder?: string } = {}): Promise<Extension> {
    const plain = options.part === undefined;
    const renewed = plain ? this.#renewInMemory(hold, true) : null;
    if (renewed !== null) return Promise.resolve(renewed);
    const written = this.#commit.run(() => this.#extendNow(hold, options, this.#clock.now()));
    if (!plain) return written;
    // A disk that is full must not end the holds of workers that are well: after a restart the hold would get its term all the same.
    return written.catch((error: unknown) => {
      const full = error instanceof LongshoreError && error.code === "LONGSHORE_STORE_UNAVAILABLE";
      const unwritten = full ? this.#renewInMemory(hold, false) : null;
      if (unwritten === null) throw error;
      return unwritten;
    });
  }

  settle(report: Report): Promise<Verdict> {
    return this.#commit.run(() => this.#settleNow(report));
  }

  cancelTask(taskId: string): Promise<boolean> {
    return this.#commit.run(() => {
      const task = this.tasks.get(taskId);
      if (task === null || !isOpen(task.state) || task.state === "cancelling") return false;
      this.cancelOne(taskId);
      if (task.runId !== null) this.#runs.ended(task, "cancelled", null);
      return true;
    });
  }

  /** An operation each, so that one which cannot be carried out holds up no other. */
  async expire(ids: readonly string[]): Promise<void> {
    const expiries = ids.map((id) =>
      this.#commit.run(() => {
        if (id.startsWith(runDeadlinePrefix)) this.#runs.expireRun(id.slice(runDeadlinePrefix.length));
        else this.#expireTask(id);
      }),
    );
    const failed = (await Promise.allSettled(expiries)).find((expiry) => expiry.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }

  task(taskId: string): Promise<Task | undefined> {
    return Promise.resolve(this.tasks.get(taskId) ?? undefined);
  }

  /** Inside an operation: puts a new task on the board, or a record beside it when it has no lane. `anew`: it may have lived before. */
  place(task: Task, anew: boolean): void {
    const before = anew ? this.tasks.get(task.id) : null;
    // A step that is tried anew after its run had ended goes on counting, so that holds of its earlier life stay fenced off.
    const counted = before === null ? task : { ...task, attempt: before.attempt + 1, grant: before.grant + (before.grant % 2) };
    const placed = { ...counted, sequence: ++this.#sequence };
    this.tasks.put(placed.id, placed, true);
    if (before !== null) this.#leaveLife(before, placed.queuedAt);
    if (isOpen(placed.state)) this.#lines.join(placed, placed.queuedAt);
  }

  /** Inside an operation: cancels an open task without telling its run. */
  cancelOne(taskId: string): void {
    const task = this.tasks.get(taskId);
    const next = task === null ? null : cell(task.state, "cancel");
    if (task === null || next === null) return;
    if (next.to === "cancelling") this.tasks.put(task.id, { ...task, state: "cancelling" });
    else this.#end(task, "cancelled", { now: this.#clock.now(), by: "cancel", output: task.output, error: null });
  }

  /** Inside an operation: what is recorded about a step is void, but its grants go on counting. */
  forget(taskId: string): void {
    const task = this.tasks.get(taskId);
    if (task === null) return;
    const now = this.#clock.now();
    this.tasks.put(taskId, { ...task, state: "forgotten", endedAt: now, holdUntil: null, grant: task.grant + (task.grant % 2) });
    this.#leaveLife(task, now);
  }

  /** Brings memory up to what the file says. Every live hold gets one full term: its holder may have renewed it unwritten. */
  recover(): void {
    const now = this.#clock.now();
    for (const row of this.#db.prepare(`SELECT ${taskColumns} FROM task WHERE ended_at IS NULL`).iterate()) {
      const stored = taskOf(row);
      this.#sequence = Math.max(this.#sequence, stored.sequence);
      // A delay is never longer than it was at its beginning, even if the machine's clock has been set back since.
      const dueAt = Math.min(stored.dueAt, now + stored.dueAt - stored.queuedAt);
      const task = stored.state === "queued" ? { ...stored, dueAt } : { ...stored, holdUntil: now + stored.termMs };
      if (task.state !== "queued" || dueAt !== stored.dueAt) this.tasks.refresh(task.id, task);
      if (task.state !== "queued") {
        if (task.limits.length > 0) this.limits.take(task.limits, task.claimedAt ?? now);
      } else if (task.lane !== null && task.dueAt <= now) this.lanes.queue(task.lane).ready.push(placeOf(task));
      const next = nextDeadline(task, now);
      if (next !== null) this.#deadline(task.id, next);
    }
  }

  get #runs(): Follower {
    if (this.#follower === null) throw new Error("The board has no follower yet.");
    return this.#follower;
  }

  /**
   * Between batches memory is the committed state, so a plain renewal needs no operation of its own. Null when it does: the hold is not
   * simply held and current, or, with `lately`, was last renewed long enough ago to be written down.
   */
  #renewInMemory(hold: Hold, lately: boolean): Extension | null {
    const now = this.#clock.now();
    const task = this.tasks.kept(hold.taskId);
    if (task?.state !== "held" || task.holdUntil === null) return null;
    if (lately && now - (task.holdUntil - task.termMs) >= task.termMs / 3) return null;
    if (fence(task, hold, "extend", now, () => null) !== "current") return null;
    const holdUntil = now + task.termMs;
    this.tasks.refresh(task.id, { ...task, holdUntil });
    return { verdict: "ok", holdUntil };
  }

  #extendNow(hold: Hold, options: { part?: string; holder?: string }, now: number): Extension {
    const task = this.tasks.get(hold.taskId) ?? undefined;
    const verdict = fence(task, hold, "extend", now, () => null);
    if (verdict !== "current" || task === undefined) return { verdict: verdict as Verdict, holdUntil: null };
    const next = cell(task.state, "extend");
    if (next?.to === "same") return { verdict: next.verdict, holdUntil: task.holdUntil };
    const holdUntil = task.state === "queued" ? null : now + task.termMs;
    const state = task.state === "offered" ? "held" : task.state;
    this.tasks.put(task.id, {
      ...task,
      state,
      holdUntil,
      holder: task.holder ?? (task.state === "queued" ? null : (options.holder ?? null)),
      output: options.part ?? task.output,
    });
    return { verdict: "ok", holdUntil };
  }

  #settleNow(report: Report): Verdict {
    const { verb } = report;
    const now = this.#clock.now();
    const task = this.tasks.get(report.hold.taskId) ?? undefined;
    const closedBy = (grant: number) => (task?.closedGrant === grant ? task.closedBy : this.#pastClosing(report.hold.taskId, grant));
    const fenced = fence(task, report.hold, verb, now, closedBy);
    if (fenced !== "current" || task === undefined) return fenced as Verdict;
    const next = cell(task.state, verb);
    if (next === null) return "stale";
    if (next.to === "cancelled") {
      const output = verb === "complete" ? report.output : task.output;
      this.#end(task, "cancelled", { now, by: verb, output, error: verb === "fail" ? withoutNul(report.error) : null });
    } else if (verb === "complete") {
      const done = this.#end(task, "done", { now, by: verb, output: merged(task, report), error: null });
      if (done.runId !== null) this.#runs.done(done);
    } else if (verb === "defer") this.#deferNow(task, report, now);
    else
      this.#close(
        task,
        verb,
        { kind: "failed", error: withoutNul(report.error), retryable: report.retryable, delayMs: report.delayMs },
        now,
      );
    return next.verdict;
  }

  /** Back in line; the attempt goes on and neither budget is spent. */
  #deferNow(task: Task, report: Report & { verb: "defer" }, now: number): void {
    const deferrals = task.deferrals + (report.unseen ? 0 : 1);
    this.#requeue(task, "defer", { ...task, deferrals, dueAt: now + report.delayMs, output: report.output ?? task.output }, now);
  }

  #expireTask(id: string): void {
    const now = this.#clock.now();
    const task = this.tasks.get(id);
    if (task === null || !isOpen(task.state)) return;
    const passed = passedDeadline(task, now);
    if (passed === null) {
      // Its delay is over, or a window that it was parked on has opened; a deadline that moved is only noted anew.
      if (task.state === "queued" && task.dueAt <= now) this.#lines.join(task, now);
      const next = nextDeadline(task, now);
      if (next !== null) this.#commit.after(() => this.#deadline(id, next));
    } else if (task.state === "cancelling") this.#end(task, "cancelled", { now, by: "expire", output: task.output, error: null });
    else this.#close(task, "expire", passed === "holdUntil" ? { kind: "lost" } : { kind: "timed-out", which: passed }, now);
  }

  /** An attempt is over without a result: policy says whether another follows. */
  #close(task: Task, by: Verb, closure: Closure, now: number): void {
    this.#commit.after(() => {
      this.counts[closure.kind]++;
    });
    const next = task.runId === null ? nextTry(policyOf(task), task, closure, now, this.#random()) : this.#runs.closed(task, closure);
    const counted = { ...task, failures: next.failures, lost: next.lost };
    if (!next.again) {
      this.#end(counted, "failed", { now, by, output: task.output, error: next.error });
      return;
    }
    const error = closure.kind === "failed" ? closure.error : closure.kind === "lost" ? "lease expired" : `timed out (${closure.which})`;
    this.#attempts.add({ task, closedBy: by, error, endedAt: now });
    const fresh = { startedAt: null, endBy: null, output: null, deferrals: 0 };
    this.#requeue(task, by, { ...counted, ...fresh, attempt: task.attempt + 1, dueAt: next.dueAt }, now);
  }

  #requeue(before: Task, by: Verb, task: Task, now: number): void {
    const queued: Task = {
      ...task,
      state: "queued",
      // Even numbers are never handed out: the counter moves when the task leaves `queued` and when it comes back.
      grant: before.state === "queued" ? before.grant : before.grant + 1,
      sequence: ++this.#sequence,
      holder: null,
      holdUntil: null,
      claimedAt: null,
      queuedAt: now,
      claimBy: task.claimMs === null ? null : task.dueAt + task.claimMs,
      closedGrant: before.grant,
      closedBy: by,
    };
    this.tasks.put(queued.id, queued);
    this.#lines.leave(before, now);
    this.#lines.join(queued, now);
  }

  #end(task: Task, state: EndState, how: { now: number; by: Verb; output: string | null; error: string | null }): Task {
    const ended: Task = {
      ...task,
      state,
      output: how.output,
      error: how.error,
      endedAt: how.now,
      holdUntil: null,
      claimBy: null,
      closedGrant: task.grant,
      closedBy: how.by,
    };
    this.tasks.put(ended.id, ended);
    this.#lines.leave(task, how.now);
    // It stood for something else, which nobody waits for any more.
    if (task.lane === null) this.#runs.abandoned(task);
    return ended;
  }

  /** A step starts anew: how its last attempt ended goes to its history, and whoever still works on it holds nothing any more. */
  #leaveLife(task: Task, now: number): void {
    if (task.startedAt !== null && task.state !== "forgotten")
      this.#attempts.add({ task, closedBy: task.closedBy ?? "cancel", error: task.error, endedAt: task.endedAt ?? now });
    if (isOpen(task.state)) this.#lines.leave(task, now);
  }
}

/** SQLite's texts end at the first NUL when they are read back. What a program had to say is kept readable. */
function withoutNul(text: string): string {
  return text.replaceAll("\u0000", "\ufffd");
}

function policyOf(task: Task): RetryPolicy {
  return task.policy === null ? noRetry : (JSON.parse(task.policy) as RetryPolicy);
}

function merged(task: Task, report: Report & { verb: "complete" }): string {
  if (!report.merge || task.output === null) return report.output;
  return JSON.stringify({ ...(JSON.parse(task.output) as object), ...(JSON.parse(report.output) as object) });
}
