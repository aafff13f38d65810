// The life of a task: how it is queued, queued again, retried and ended. The verbs that cause this are in board.ts.

import type { Clock } from "../../core/clock.ts";
import type { Amount } from "../amounts.ts";
import type { Rows } from "../cached-rows.ts";
import type { RetryPolicy } from "../run/plan.ts";
import type { Remains } from "../run/remains.ts";
import { type Closure, errorOf, faultOf, type NextTry, nextTry, noRetry, overdueOf } from "../run/retry.ts";
import type { Tx } from "../tx.ts";
import type { Attempts, Closing, Why } from "./attempts.ts";
import type { Follower } from "./local-follower.ts";
import type { ReadyQueues } from "./ready-queues.ts";
import type { Report } from "./store.ts";
import { type EndState, isDriver, isOpen, isWait, type Lane, type TaskRow } from "./task.ts";
import { copyOf } from "./task-copy.ts";
import { endedTask, type Result } from "./task-end.ts";
import type { AttemptEnd, WorkListener } from "./work-listener.ts";

/** How a task is queued again. */
interface Queueing {
  /** Fields that are normally written only once have changed too. */
  rewritten?: boolean;
  /** True when no worker has run it: then it keeps its place. Otherwise it is queued after the tasks that already wait. */
  keepsPlace?: boolean;
  /** When a worker must have taken it. Default: a full period from now. */
  claimBy?: number | null;
}

/** The limit of the time to be claimed for a task that returns unseen several times, in periods. It covers a few lost workers. */
const unseenClaimsMax = 3;

/** The name of the amount; migrations fill it. */
export const sequencesAmount = "places";
/** Places are reserved in the file in groups of this size: the start does not read the rows that have them. */
const reservedPlaces = 100_000;

export interface TaskLifeOptions {
  /** All places up to this number may have been given. */
  sequences: Amount;
  tasks: Rows<TaskRow>;
  queues: ReadyQueues;
  attempts: Attempts;
  remains: Pick<Remains, "refuse">;
  clock: Clock;
  random: () => number;
  counts: Record<Closure["kind"], number>;
  work: WorkListener;
  runs: () => Follower;
}

export class TaskLife {
  readonly #options: TaskLifeOptions;
  #sequence = 0;

  constructor(options: TaskLifeOptions) {
    this.#options = options;
  }

  /** The next place in a lane, or among the waits of a run. */
  #next(tx: Tx): number {
    const { sequences } = this.#options;
    if (++this.#sequence > sequences.value) sequences.add(tx, this.#sequence - sequences.value + reservedPlaces);
    return this.#sequence;
  }

  /** Called at start: new places come after all that earlier starts may have given. */
  recover(): void {
    this.#sequence = this.#options.sequences.value;
  }

  /** Called at start for each stored task that a worker may take: new places come after its place. */
  seen({ sequence }: Pick<TaskRow, "sequence">): void {
    this.#sequence = Math.max(this.#sequence, sequence);
  }

  /** Queues a task that belongs to no run. The commit fails when its id exists. */
  post(tx: Tx, task: TaskRow): void {
    this.#options.remains.refuse(tx, task.id);
    const posted = copyOf(task);
    posted.sequence = this.#next(tx);
    this.#options.tasks.put(tx, posted.id, posted, "first");
    this.#options.queues.join(tx, posted, posted.queuedAt);
  }

  /** Puts a new task on its lane, or stores a record when it has no lane. `again`: the task may exist from an earlier life of its run. */
  place(tx: Tx, task: TaskRow, again: boolean, keepsCounting = false): void {
    const before = again ? this.#options.tasks.get(tx, task.id) : null;
    const placed = copyOf(before === null ? task : counted(task, before, keepsCounting));
    placed.sequence = this.#next(tx);
    this.#options.tasks.put(tx, placed.id, placed, true);
    if (before !== null) this.leaveLife(tx, before, placed.queuedAt, keepsCounting);
    if (isOpen(placed.state)) this.#options.queues.join(tx, placed, placed.queuedAt);
  }

  /** Queues the task again; the attempt continues and uses up neither budget. */
  defer(tx: Tx, task: TaskRow, report: Report & { verb: "defer" }, closing: Closing): void {
    if (report.unseen) return this.#comeBackUnseen(tx, task, closing);
    const deferrals = task.deferrals + (task.state === "queued" ? 0 : 1);
    const dueAt = closing.now + report.delayMs;
    this.requeue(tx, task, closing, { ...task, deferrals, dueAt, output: report.output ?? task.output });
  }

  /**
   * Queues the task as if it had not been handed out, with its full time to be claimed. This happens a limited number of times: a task that
   * crashes every worker must end.
   */
  #comeBackUnseen(tx: Tx, task: TaskRow, closing: Closing): void {
    const { claimMs, dueAt } = task;
    const claimBy = claimMs === null ? null : Math.min(closing.now + claimMs, dueAt + unseenClaimsMax * claimMs);
    // The turn of a durable function may have another input now.
    this.requeue(tx, task, closing, task, { keepsPlace: true, claimBy, rewritten: isDriver(task) });
  }

  /** Closes an attempt without a result: the policy decides whether another follows. */
  close(tx: Tx, task: TaskRow, closing: Closing, closure: Closure): void {
    const { now } = closing;
    tx.after(() => {
      this.#options.counts[closure.kind]++;
    });
    const fault = faultOf(closure);
    const overdue = overdueOf(closure);
    const next =
      task.runId === null
        ? nextTry(policyOf(task), task, closure, now, this.#options.random())
        : this.#options.runs().closed(tx, task, closure);
    if (!next.again) {
      const counted = { ...task, failures: next.failures, lost: next.lost, ordinal: next.ordinal ?? task.ordinal };
      this.end(tx, counted, "failed", closing, { output: task.output, error: next.error, fault, overdue });
      return;
    }
    this.nextAttempt(tx, task, closing, { error: errorOf(closure), fault, overdue }, next);
  }

  nextAttempt(tx: Tx, task: TaskRow, closing: Closing, why: Why, next: NextTry & { again: true }): void {
    const input = next.input ?? task.input;
    // If the task ended while its run was paused, its attempt was over at that time.
    if (isOpen(task.state)) this.#over(tx, task, { state: "failed", endedAt: closing.now, ...why });
    this.#options.attempts.add(tx, task, closing, why, input === task.input ? null : task.input);
    const { failures, lost } = next;
    const fresh = {
      startedAt: null,
      endBy: null,
      endedAt: null,
      output: null,
      error: null,
      fault: null,
      overdue: null,
      deferrals: 0,
      attemptAt: closing.now,
    };
    // A record without a lane has no delay: it waits for something else from now on.
    const dueAt = task.lane === null ? wakeTime(next.wakeAt, closing.now) : next.dueAt;
    const { ordinal = task.ordinal, lane = task.lane } = next;
    // On another lane the time to be claimed does not run.
    const claimMs = lane === task.lane ? task.claimMs : null;
    const counted = { ...task, ...fresh, failures, lost, input, dueAt, attempt: task.attempt + 1, ordinal, lane, claimMs };
    this.#abandon(tx, task);
    this.requeue(tx, task, closing, counted, { rewritten: input !== task.input || lane !== task.lane });
    if (task.signal !== null) this.#options.runs().waitsAgain(tx, task);
  }

  /** Stops what an attempt without a lane waited for: no step needs it any more. */
  #abandon(tx: Tx, task: TaskRow): void {
    if (isWait(task)) this.#options.runs().abandoned(tx, task);
  }

  /**
   * A turn of a durable function has ended: its task waits without a lane until there is news for the function. Its budgets start again,
   * because the turn succeeded.
   */
  park(tx: Tx, task: TaskRow, closing: Closing): void {
    this.#over(tx, task, { state: "done", endedAt: closing.now, error: null, fault: null });
    const fresh = { startedAt: null, endBy: null, output: null, error: null, fault: null, overdue: null, deferrals: 0 };
    const parked = { ...task, ...fresh, lane: null, input: "null", failures: 0, lost: 0, claimMs: null, dueAt: closing.now };
    this.requeue(tx, task, closing, parked, { rewritten: true });
  }

  /** Queues the task of a durable function for its next turn. */
  turn(tx: Tx, task: TaskRow, lane: Lane, input: string, claimMs: number | null): void {
    const now = this.#options.clock.now();
    const queued = copyOf(task);
    queued.lane = lane;
    queued.input = input;
    queued.sequence = this.#next(tx);
    queued.claimMs = claimMs;
    queued.attemptAt = now;
    queued.queuedAt = now;
    queued.dueAt = now;
    queued.claimBy = claimMs === null ? null : now + claimMs;
    this.#options.tasks.put(tx, queued.id, queued, true);
    this.#options.queues.join(tx, queued, now);
  }

  /** Ends a record that waited for a time or a signal. The value of the signal is its output. */
  wake(tx: Tx, task: TaskRow, closing: Closing, output: string = task.output ?? "{}"): void {
    const done = this.end(tx, task, "done", closing, { output, error: null });
    if (done.runId !== null) this.#options.runs().done(tx, done);
  }

  requeue(tx: Tx, before: TaskRow, { now, by, receipt }: Closing, task: TaskRow, queueing: Queueing = {}): void {
    const { rewritten = false, keepsPlace = false, claimBy = task.claimMs === null ? null : task.dueAt + task.claimMs } = queueing;
    const queued = copyOf(task);
    queued.state = "queued";
    // Even numbers are never handed out: the counter rises when the task leaves `queued` and when it is queued again.
    queued.grant = before.grant + (before.grant % 2);
    queued.sequence = keepsPlace ? before.sequence : this.#next(tx);
    queued.holder = null;
    queued.holdUntil = null;
    queued.claimedAt = null;
    queued.queuedAt = now;
    queued.claimBy = claimBy;
    queued.closedGrant = before.grant;
    queued.closedBy = by;
    queued.closedReceipt = receipt;
    this.#options.tasks.put(tx, queued.id, queued, rewritten);
    if (isOpen(before.state)) this.#options.queues.leave(tx, before, now);
    // The clock may have advanced since the decision that there is no delay.
    this.#options.queues.join(tx, queued, this.#options.clock.now());
  }

  end(tx: Tx, task: TaskRow, state: EndState, closing: Closing, result: Result): TaskRow {
    const ended = endedTask(task, state, closing, result);
    this.#over(tx, ended, ended as AttemptEnd);
    this.replace(tx, task, ended, closing.now);
    return ended;
  }

  /** Reports the end of an attempt that a worker had begun. */
  #over(tx: Tx, task: TaskRow, end: AttemptEnd): void {
    if (task.startedAt !== null && task.lane !== null) tx.after(() => this.#options.work.attemptOver(task, end));
  }

  /** Replaces a task that has ended, or whose holder must stop. In the second case the task keeps its permits. */
  replace(tx: Tx, before: TaskRow, task: TaskRow, now: number): void {
    this.#options.tasks.put(tx, task.id, task);
    if (isOpen(task.state)) return;
    this.#options.queues.leave(tx, before, now);
    this.#abandon(tx, before);
  }

  /** A step starts again: its last attempt is added to its history, and a worker that still runs it loses its hold. */
  leaveLife(tx: Tx, task: TaskRow, now: number, keepsCounting = false): void {
    if ((task.startedAt !== null || keepsCounting) && task.state !== "forgotten") {
      const closing = { now: task.endedAt ?? now, by: task.closedBy ?? "cancel", receipt: task.closedReceipt };
      this.#options.attempts.add(tx, task, closing, { error: task.error, fault: task.fault, overdue: task.overdue }, task.input);
    }
    if (isOpen(task.state)) this.#options.queues.leave(tx, task, now);
  }
}

/** A step that is retried after the end of its run continues its counters, so that holds of the earlier life stay fenced. */
function counted(task: TaskRow, before: TaskRow, keepsCounting: boolean): TaskRow {
  const attempt = before.attempt + 1;
  const sameLife = before.state !== "forgotten";
  const spent = keepsCounting && sameLife ? { failures: before.failures, lost: before.lost } : {};
  // Only the record of a child run stays `streamed`: its run has continued with the steps after it, and waits for it again.
  const streamed = sameLife && task.lane === null && before.streamed;
  return {
    ...task,
    ...spent,
    streamed,
    attempt,
    firstAttempt: sameLife ? before.firstAttempt : attempt,
    grant: before.grant + (before.grant % 2),
  };
}

/** A time in the past is due in the next millisecond: `dueAt` equal to now means that the record waits only for a report. */
function wakeTime(wakeAt: number | undefined, now: number): number {
  return wakeAt === undefined ? now : Math.max(wakeAt, now + 1);
}

function policyOf(task: TaskRow): RetryPolicy {
  return task.policy === null ? noRetry : (JSON.parse(task.policy) as RetryPolicy);
}
