// The verbs that change a task's state. Every protocol translates its operations into them. The store applies the verbs; this file contains
// everything that needs time: waiting claims, deadlines, and callers that wait for results.

import type { Clock } from "../../core/clock.ts";
import { LongshoreError } from "../../core/errors.ts";
import { type GiveUp, Results } from "../../core/results.ts";
import type { Verdict } from "../../core/verdict.ts";
import { Deadlines } from "./deadlines.ts";
import type { Halts } from "./halts.ts";
import type { Reach } from "./lanes.ts";
import type { LimitChanges } from "./limit-changes.ts";
import type { ReservedLanes } from "./reserved-lanes.ts";
import type { BoardStore, ClaimRequest, Commanded, Extending, Extension, ForeseenReport, Leave, NewTaskRow } from "./store.ts";
import { type Hold, isOpen, type TaskRow } from "./task.ts";

export interface Claim extends Omit<Offer, "offerMs"> {
  holder: string;
}

/** Requests tasks whose holder becomes known at the first extend. */
export interface Offer {
  reach: Reach;
  /**
   * A lane of `reach` that is reserved for the server, when the claim is made for that lane. The claim takes from no other reserved lane.
   */
  serves?: string;
  termMs: number;
  /** How long an offer waits for a worker to take it. Default: `termMs`. */
  offerMs?: number;
  max?: number;
  /** How long to wait for work when there is none; 0 or absent returns at once. */
  waitMs?: number;
  /** Aborted when the client has disconnected: the claim leaves the queue of waiters, or its task is given back. */
  signal?: AbortSignal;
}

/** `output` is JSON text that is kept although the task failed; `by` names the reporter when no worker held the task. */
export interface FailureReport {
  error: string;
  retryable: boolean;
  /** The task itself did not fail: the next attempt is counted against the budget of lost holds, not that of failures. */
  spends?: "lost";
  delayMs?: number;
  receipt?: string;
  output?: string;
  by?: string;
}

/** Maximum number of idle long polls; each costs about a kilobyte. Above it, claims are refused and workers must poll again later. */
export const waitersMax = 20_000;
/** When the store cannot be written, due deadlines are checked again after this time. */
const retryMs = 1_000;

export interface BoardDeps {
  readonly store: BoardStore;
  readonly clock: Clock;
  readonly reserved: ReservedLanes;
}

export class Board {
  /** Lanes that no worker may claim. */
  readonly reserved: ReservedLanes;
  readonly #store: BoardStore;
  readonly #clock: Clock;
  readonly #deadlines: Deadlines;
  readonly #results = new Results<TaskRow>();
  /** One function for each waiting claim or offer, which cancels the wait, and the holder. */
  readonly #standing = new Map<Leave, string | null>();
  /** The functions for deadlines of other things than tasks and runs, by the prefix of the deadline's id. */
  readonly #others = new Map<string, (id: string) => Promise<void>>();
  #waiting = 0;
  readonly #dismissal = new AbortController();

  constructor({ store, clock, reserved }: BoardDeps) {
    this.#store = store;
    this.#clock = clock;
    this.reserved = reserved;
    this.#deadlines = new Deadlines(clock, (ids) => this.#expire(ids));
    store.halts.onCordon((worker) => {
      for (const [leave, holder] of [...this.#standing]) if (holder === worker) leave();
    });
  }

  async post(tasks: readonly NewTaskRow[]): Promise<void> {
    for (const task of tasks) this.#checkLanes(task);
    await this.#store.post(tasks);
  }

  /** Posts a task and waits for its end. Rejects when the task may not be posted to its lanes. */
  perform(task: NewTaskRow): Promise<TaskRow> {
    // Not an async function: that would cost each task another promise.
    try {
      this.#checkLanes(task);
    } catch (error) {
      return Promise.reject(error);
    }
    const { ended, fail } = this.#results.expect(task.id);
    this.#store.post([task]).catch(fail);
    return ended;
  }

  /** Hands out tasks to a known holder, best first. Returns an empty list when no task was ready until the end of the wait. */
  claim(claim: Claim): Promise<TaskRow[]> {
    return this.#handOut(claim, claim.holder);
  }

  /**
   * Hands out tasks whose holder becomes known with the first extend. Waits like a claim. An offer that no worker takes in time is queued
   * again and uses up no attempt.
   */
  offer(offer: Offer): Promise<TaskRow[]> {
    return this.#handOut(offer, null);
  }

  extend(hold: Hold, options?: Extending): Promise<Extension> {
    return this.#store.extend(hold, options);
  }

  /** `output` is JSON text. With `merge` it is merged into the output of earlier extends; otherwise it replaces that output. */
  complete(hold: Hold, output: string, options: { merge?: boolean; receipt?: string; by?: string } = {}): Promise<Verdict> {
    return this.#store.settle({ verb: "complete", hold, output, ...options });
  }

  /** The same for a worker that can take another task: it gets one in the same transaction, if there is one. */
  completeAndClaim(
    hold: Hold,
    output: string,
    { turn, ...options }: { receipt?: string; turn?: ForeseenReport },
    { reach, serves, holder, termMs, signal }: Claim,
  ): Promise<{ verdict: Verdict; task?: TaskRow | undefined; tookTurn?: boolean }> {
    // A closing server takes reports and hands out nothing.
    const isRefused = this.dismissed.aborted || this.#isCordoned(holder) || this.reserved.refusedClaim(reach.names, serves) !== undefined;
    if (isRefused) return this.complete(hold, output, options).then((verdict) => ({ verdict }));
    const report = { verb: "complete", hold, output, turn, ...options } as const;
    return this.#store.settleAndClaim(report, { reach, holder, termMs, max: 1 }).then(({ verdict, task, tookTurn }) => {
      if (task === null) return { verdict, tookTurn };
      return signal?.aborted ? this.#giveAllBack([task]).then(() => ({ verdict, tookTurn })) : { verdict, task, tookTurn };
    });
  }

  /** Adds commands of a durable function in the middle of its turn. `report` is JSON text. */
  command(hold: Hold, report: string): Promise<Commanded> {
    return this.#store.command(hold, report);
  }

  fail(hold: Hold, failure: FailureReport): Promise<Verdict> {
    return this.#store.settle({ verb: "fail", hold, ...failure });
  }

  /** The receipt of the report that closed this grant, by which a repeated report is recognised; undefined when there is none. */
  receipt(taskId: string, grant: number): Promise<string | undefined> {
    return this.#store.receipt(taskId, grant);
  }

  /** Queues the task again after a delay. Uses up no attempt. */
  defer(hold: Hold, delayMs: number, output?: string): Promise<Verdict> {
    return this.#store.settle({ verb: "defer", hold, delayMs, output });
  }

  /** Queues the task again at once, because the claim did not reach its client. */
  giveBack(hold: Hold): Promise<Verdict> {
    return this.#store.settle({ verb: "defer", hold, delayMs: 0, unseen: true });
  }

  /**
   * Takes back an offer that reached no worker: the task returns to its place in the lane at once. When a worker has already taken it, the
   * worker keeps it and `busy` is returned.
   */
  retract(hold: Hold): Promise<Verdict> {
    return this.#store.settle({ verb: "defer", hold, delayMs: 0, unseen: true, unlessTaken: true });
  }

  /** Returns false when the task had already ended. The holder is informed by the verdict of its next extend. */
  cancel(taskId: string): Promise<boolean> {
    return this.#store.cancelTask(taskId);
  }

  /** The holder reports that the task was cancelled. The task ends at once and is not retried. */
  withdraw(hold: Hold, why: { error: string; output?: string; by?: string }): Promise<Verdict> {
    return this.#store.withdraw(hold, why);
  }

  get limits(): LimitChanges {
    return this.#store.limitChanges;
  }

  /** Paused lanes and cordoned workers. */
  get halts(): Halts {
    return this.#store.halts;
  }

  task(taskId: string): Promise<TaskRow | undefined> {
    return this.#store.task(taskId);
  }

  /** Resolves with the task once it has ended, or in its current state when the caller gives up; undefined when there is no such task. */
  result(taskId: string, giveUp?: GiveUp): Promise<TaskRow | undefined> {
    return this.#results.of(
      taskId,
      () => this.#store.task(taskId),
      (task) => isOpen(task.state),
      giveUp,
    );
  }

  /** Aborts when the server is closing: long polls must return now. */
  get dismissed(): AbortSignal {
    return this.#dismissal.signal;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** The server is closing: ends every waiting claim empty and refuses further ones. Reports are accepted as before. */
  dismiss(): void {
    this.#dismissal.abort();
    for (const leave of [...this.#standing.keys()]) leave();
  }

  /** Called by the store: the time of the next deadline of `id`; null when it has none. */
  deadline(id: string, at: number | null): void {
    if (at === null) this.#deadlines.drop(id);
    else this.#deadlines.add(id, at);
  }

  /** Calls `fire` with the rest of the id when a deadline has passed whose id begins with this prefix. When it rejects, it is called again later. */
  onDeadline(prefix: string, fire: (id: string) => Promise<void>): void {
    this.#others.set(prefix, fire);
  }

  /** Called by the store after each commit that changed this task. */
  changed(task: TaskRow): void {
    if (this.#results.size > 0 && !isOpen(task.state)) this.#results.tell(task.id, task);
  }

  close(): void {
    this.#deadlines.close();
    this.#results.close(new LongshoreError("LONGSHORE_CLOSED", "The server was closed before the task ended."));
  }

  #handOut({ reach, serves, termMs, offerMs, max = 1, waitMs, signal }: Offer, holder: string | null): Promise<TaskRow[]> {
    const refused = this.reserved.refusedClaim(reach.names, serves);
    if (refused !== undefined) return Promise.reject(refused);
    const request = { reach, holder, termMs, offerMs, max };
    if (this.dismissed.aborted)
      return Promise.reject(new LongshoreError("LONGSHORE_SHUTDOWN", "The server is closing and hands out no more work."));
    const isCordoned = this.#isCordoned(holder);
    if (!waitMs && isCordoned) return Promise.resolve([]);
    if (!waitMs) return this.#store.claim(request).then(({ tasks }) => this.#unlessGone(tasks, signal));
    if (this.#waiting >= waitersMax) {
      const message = `${waitersMax} claims are waiting already, which is the limit: claim again later, without waiting.`;
      return Promise.reject(new LongshoreError("LONGSHORE_LIMIT", message));
    }
    return isCordoned ? this.#waitForNothing(holder, waitMs, signal) : this.#waitFor(request, waitMs, signal);
  }

  /** Creates only one promise: each further one would delay every task that a commit hands to a waiting claim. */
  #waitFor(request: ClaimRequest, waitMs: number, signal: AbortSignal | undefined): Promise<TaskRow[]> {
    const { holder } = request;
    this.#waiting++;
    return new Promise((resolve, reject) => {
      let leave: Leave = () => {};
      let stopTimer = () => {};
      let over = false;
      const gone = () => leave();
      const finish = (tasks: TaskRow[]) => {
        over = true;
        this.#waiting--;
        this.#standing.delete(leave);
        stopTimer();
        signal?.removeEventListener("abort", gone);
        resolve(this.#unlessGone(tasks, signal));
      };
      const standing = { settle: (task: TaskRow | null) => finish(task === null ? [] : [task]) };
      this.#store.claim(request, standing).then(
        (answer) => {
          if (answer.leave === null) return finish(answer.tasks);
          if (over) return;
          leave = answer.leave;
          if (signal?.aborted || this.dismissed.aborted || this.#isCordoned(holder)) return leave();
          this.#standing.set(leave, holder);
          stopTimer = this.#clock.at(this.#clock.now() + waitMs, leave);
          signal?.addEventListener("abort", gone, { once: true });
        },
        (error) => {
          this.#waiting--;
          reject(error);
        },
      );
    });
  }

  #isCordoned(holder: string | null): boolean {
    return holder !== null && this.#store.halts.cordonOf(holder) !== undefined;
  }

  /** A cordoned worker waits as if there were no task, so that it does not poll again at once. It waits no longer than it is cordoned. */
  #waitForNothing(holder: string | null, waitMs: number, signal: AbortSignal | undefined): Promise<TaskRow[]> {
    this.#waiting++;
    return new Promise((resolve) => {
      const leave = () => {
        if (!this.#standing.delete(leave)) return;
        this.#waiting--;
        stopTimer();
        signal?.removeEventListener("abort", leave);
        resolve([]);
      };
      const stopTimer = this.#clock.at(this.#clock.now() + waitMs, leave);
      this.#standing.set(leave, holder);
      signal?.addEventListener("abort", leave, { once: true });
      if (signal?.aborted) leave();
    });
  }

  /** Gives tasks back when their client has disconnected. */
  #unlessGone(tasks: TaskRow[], signal: AbortSignal | undefined): TaskRow[] | Promise<TaskRow[]> {
    return signal?.aborted && tasks.length > 0 ? this.#giveAllBack(tasks) : tasks;
  }

  async #giveAllBack(tasks: readonly TaskRow[]): Promise<TaskRow[]> {
    // If the store cannot be written now, the holds expire.
    await Promise.allSettled(tasks.map(({ id: taskId, grant }) => this.giveBack({ taskId, grant })));
    return [];
  }

  #expire(ids: string[]): void {
    const ofStore: string[] = [];
    for (const id of ids) {
      const other = [...this.#others].find(([prefix]) => id.startsWith(prefix));
      if (other === undefined) ofStore.push(id);
      else this.#orLater([id], other[1](id.slice(other[0].length)));
    }
    if (ofStore.length > 0) this.#orLater(ofStore, this.#store.expire(ofStore));
  }

  #orLater(ids: readonly string[], done: Promise<void>): void {
    done.catch(() => {
      // The store itself reports that it cannot be written; the ids stay due.
      const at = this.#clock.now() + retryMs;
      for (const id of ids) this.#deadlines.add(id, at);
    });
  }

  #checkLanes(row: NewTaskRow): void {
    const refused = this.reserved.refusedPost(row);
    if (refused !== undefined) throw new LongshoreError("LONGSHORE_BAD_INPUT", refused, { detail: { field: "name" } });
  }
}
