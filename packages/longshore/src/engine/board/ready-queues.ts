// Decides which claim gets which task next: ready queues, waiting claims and limits. All of it is in memory; queues and limits are rebuilt
// at start. Changes happen inside operations of the group commit, which undoes them when the write fails.

import type { Rows } from "../cached-rows.ts";
import { together } from "../rows.ts";
import type { Tx } from "../tx.ts";
import type { ClaimGroup } from "./claim-group.ts";
import { grantAfterRemoval } from "./first-grant.ts";
import type { HandOuts } from "./hand-outs.ts";
import type { Lanes, Place } from "./lanes.ts";
import { type Blocked, type LimitKey, type Limits, type ParkingKey, parkingKey } from "./limits.ts";
import type { Leave, Standing } from "./store.ts";
import type { Lane, TaskRow } from "./task.ts";
import { copyOf, type TaskCopy } from "./task-copy.ts";
import { Waiter } from "./waiters.ts";

export interface ReadyQueuesOptions {
  /** The lowest grant number of new hand-outs: see first-grant.ts. */
  grantsFrom: number;
  tasks: Rows<TaskRow>;
  lanes: Lanes;
  limits: Limits;
  handOuts: HandOuts;
  deadline: (id: string, at: number | null) => void;
  /** Called after the commit of each hand-out, with the task as it was queued. */
  handedOut: (task: TaskRow, now: number) => void;
  /** Queues a task again because its claim had left. */
  giveBack: (taskId: string, grant: number) => Promise<unknown>;
}

/** The holder of a task, and how long it holds it. */
export interface HandOut {
  holder: string | null;
  termMs: number;
  offerMs?: number;
  now: number;
}

/** A claim that comes with a report. When the report makes a task ready, this claim gets it before waiting claims. */
interface Ahead extends Omit<HandOut, "now"> {
  readonly group: ClaimGroup;
  task: TaskRow | null;
}

/** When a batch misses rows again, it loads this many times the rows that it has loaded so far. So few loads are enough. */
const loadedTimes = 2;
/** Maximum number of places that one call of `take` drops or parks: each may read a row, so about 5 ms. */
const looksMax = 500;

export class ReadyQueues {
  readonly #options: ReadyQueuesOptions;
  /** The groups that try again, in order; null while no group is being woken. */
  #waking: ParkingKey[] | null = null;
  #arrivals = 0;
  #grantsFrom: number;
  /** The highest grant number that this process has handed out. */
  #highest = 0;
  #ahead: Ahead | null = null;
  /** A task that is queued and, for now, handed to no one. */
  #heldBack: { readonly id: string; task: TaskRow | null } | null = null;
  /** Queued tasks that are not on their lane yet, because their delay has not ended. */
  readonly delayed: Set<string> = new Set<string>();

  constructor(options: ReadyQueuesOptions) {
    this.#options = options;
    this.#grantsFrom = options.grantsFrom;
  }

  /**
   * Returns the best task that these claims may take. Leftover entries are dropped and blocked tasks parked, so neither stops the tasks
   * behind them. When there are many of them, `more` is returned: they stay dropped or parked, and the next call continues behind them.
   */
  take(tx: Tx, group: ClaimGroup, now: number, wanted = 1): TaskRow | null | "more" {
    const { lanes } = this.#options;
    for (let looked = 0; looked < looksMax; looked++) {
      const queue = lanes.first(group);
      if (queue === null) return null;
      const place = lanes.pop(queue) as Place;
      const { lane } = queue;
      tx.undo(() => lanes.push(lane, place));
      const task = this.#read(tx, place.id, () => queue.ready.next(Math.max(wanted, loadedTimes * tx.loaded.size) - 1));
      if (task === null || task.state !== "queued" || task.sequence !== place.sequence) continue;
      const blocked = this.#options.limits.blocked(task.limits, now);
      if (blocked === null) return task;
      this.#park(tx, task, blocked, now);
    }
    return "more";
  }

  /** Loads the rows of the next tasks too: each claim of the batch will need one. */
  #read(tx: Tx, id: string, next: () => Place[]): TaskRow | null {
    const get = (each: string) => this.#options.tasks.get(tx, each);
    return together(
      () => get(id),
      () => [id, ...next().map((place) => place.id)].map((each) => () => get(each)),
    );
  }

  /** Hands out a task. Without a holder it becomes an offer, and the attempt starts when a worker takes it. */
  handOut(tx: Tx, task: TaskRow, to: HandOut): TaskRow {
    const { holder, now } = to;
    const termMs = termOf(task, to.termMs);
    const lastsMs = holder === null ? (to.offerMs ?? termMs) : termMs;
    const handed = copyOf(task);
    handed.state = "offered";
    handed.grant = Math.max(task.grant, this.#grantsFrom) + 1;
    this.#highest = Math.max(this.#highest, handed.grant);
    handed.holder = holder;
    handed.termMs = termMs;
    handed.claimedAt = now;
    handed.holdUntil = lastsMs === 0 ? null : now + lastsMs;
    if (holder !== null) begin(handed, now);
    if (task.limits.length > 0) {
      this.#options.limits.take(task.limits, now);
      tx.undo(() => this.#options.limits.untake(task.limits, now));
      this.#options.handOuts.add(tx, this.#options.limits.appliedTo(task.limits), now);
    }
    this.#options.tasks.put(tx, handed.id, handed);
    tx.after(() => this.#options.handedOut(task, now));
    this.#wakeAlike(tx, task, now);
    return handed;
  }

  /** Tasks were removed whose ids may be used again: no worker may get a hold that a worker of the removed one has. */
  removed(now: number): void {
    this.#grantsFrom = Math.max(this.#grantsFrom, grantAfterRemoval(this.#highest, now));
  }

  /** Hands a queued task that is due to a waiting claim, or else puts it on its lane. */
  join(tx: Tx, task: TaskRow, now: number): void {
    if (task.lane === null) return;
    if (task.dueAt > now) return this.#delay(tx, task.id);
    this.#endDelay(tx, task.id);
    const { lanes } = this.#options;
    if (this.#heldBack?.id === task.id && lanes.pauseOf(task.lane) === undefined) {
      this.#heldBack.task = task;
      return;
    }
    const waiter = lanes.nextWaiter(task.lane);
    if (waiter === undefined) return lanes.push(task.lane, placeOf(task));
    // Creates the lane, so that lists name it although no task is ever queued on it.
    lanes.queue(task.lane);
    const blocked = this.#options.limits.blocked(task.limits, now);
    if (blocked !== null) return this.#park(tx, task, blocked, now);
    const ahead = this.#ahead;
    if (ahead?.task === null && ahead.group.reach.names.includes(task.lane.name) && ahead.group.carries(task.lane)) {
      const { holder, termMs } = ahead;
      ahead.task = this.handOut(tx, task, { holder, termMs, now });
      return;
    }
    waiter.reserve();
    tx.undo(() => waiter.release());
    const { holder, termMs, offerMs } = waiter;
    const handed = this.handOut(tx, task, { holder, termMs, offerMs, now });
    const { id, grant } = handed;
    tx.after(() => {
      // Other operations of the same batch may have changed the task since.
      if (waiter.deliver(this.#options.tasks.newest(tx, id, handed) ?? handed)) return;
      // If the store cannot be written now, the hold expires.
      this.#options.giveBack(id, grant).catch(() => {});
    });
  }

  /**
   * The time of a queued task may have come. It joins its lane when its delay has ended, or when it was parked. Any other task is on its
   * lane already: a second place there would be counted as a second task.
   */
  due(tx: Tx, task: TaskRow, now: number): void {
    if (this.delayed.has(task.id) || this.#unpark(tx, task)) this.join(tx, task, now);
  }

  /** Called at start, for each queued task. */
  restore(task: Pick<TaskRow, "lane" | "dueAt"> & Place, now: number): void {
    if (task.lane === null) return;
    if (task.dueAt > now) this.delayed.add(task.id);
    else this.#options.lanes.push(task.lane, placeOf(task));
  }

  #delay(tx: Tx, id: string): void {
    this.delayed.add(id);
    tx.undo(() => this.delayed.delete(id));
  }

  #endDelay(tx: Tx, id: string): void {
    if (this.delayed.delete(id)) tx.undo(() => this.delayed.add(id));
  }

  /**
   * Performs a report whose worker also claims, and returns the task that this claim gets. It may be a task that the report has made ready,
   * so a chain of tasks needs no further request. No task overtakes another: claims wait only while there is nothing to take.
   */
  withClaim(tx: Tx, group: ClaimGroup, claim: Omit<HandOut, "now">, now: number, report: () => boolean): TaskRow | null {
    const ahead: Ahead = { group, task: null, ...claim };
    this.#ahead = ahead;
    try {
      if (!report()) return ahead.task;
    } finally {
      this.#ahead = null;
    }
    if (ahead.task !== null) return ahead.task;
    const task = this.take(tx, group, now);
    return task === null || task === "more" ? null : this.handOut(tx, task, { now, ...claim });
  }

  /** Hands tasks of a lane that was paused to claims that wait for it. Returns whether there may be more. */
  serve(tx: Tx, lane: Lane, now: number): boolean {
    const { lanes, tasks } = this.#options;
    for (let looked = 0; looked < looksMax; looked++) {
      const place = lanes.nextWaiter(lane) === undefined ? undefined : lanes.pop(lanes.queue(lane));
      if (place === undefined) return false;
      tx.undo(() => lanes.push(lane, place));
      const task = tasks.get(tx, place.id);
      if (task?.state === "queued" && task.sequence === place.sequence) this.join(tx, task, now);
    }
    return true;
  }

  /** Performs `work`. When that queues the task `id`, no claim gets it: the caller hands it out, or calls `join`. */
  holdBack(id: string, work: () => void): TaskRow | null {
    const heldBack = { id, task: null as TaskRow | null };
    this.#heldBack = heldBack;
    try {
      work();
    } finally {
      this.#heldBack = null;
    }
    return heldBack.task;
  }

  /** The task leaves its lane. If it was held, its permits are returned, and tasks that waited for them are tried again. */
  leave(tx: Tx, task: TaskRow, now: number): void {
    const { limits } = this.#options;
    this.#endDelay(tx, task.id);
    if (task.limits.length === 0) return;
    if (task.state === "queued") {
      this.#unpark(tx, task);
      // The removed task may have been the next one to try.
      return this.#wakeAlike(tx, task, now);
    }
    limits.giveBack(task.limits);
    tx.undo(() => limits.hold(task.limits));
    for (const { key } of task.limits) this.#wake(tx, limits.parked(key), now);
  }

  /** There may be more room under this key: the first tasks that wait for it are tried. */
  roomUnder(tx: Tx, key: string, now: number): void {
    this.#wake(tx, this.#options.limits.parked(key), now);
  }

  /** Lets the next task of the same group try when there is room: only the first of a group is awake. */
  #wakeAlike(tx: Tx, task: TaskRow, now: number, except?: LimitKey): void {
    const { lane, limits } = task;
    if (lane === null) return;
    const roomy = limits.filter((limit) => limit !== except && this.#options.limits.hasRoom(limit));
    if (roomy.length > 0)
      this.#wake(
        tx,
        roomy.map((limit) => parkingKey(limit, lane)),
        now,
      );
  }

  /** A task that is handed out may wake further groups. They are queued and tried in order, so that many of them do not recurse deeply. */
  #wake(tx: Tx, parked: readonly ParkingKey[], now: number): void {
    if (this.#waking !== null) {
      this.#waking.push(...parked);
      return;
    }
    this.#waking = [...parked];
    try {
      for (const key of this.#waking) {
        const task = this.#nextParked(tx, key);
        if (task !== null) this.join(tx, this.#claimableFrom(tx, task, now), now);
      }
    } finally {
      this.#waking = null;
    }
  }

  /** Starts the time in which the task must be claimed, for a task whose limit delayed that time. */
  #claimableFrom(tx: Tx, task: TaskRow, now: number): TaskRow {
    if (task.claimMs === null || !task.limits.some(({ pausesClaim }) => pausesClaim)) return task;
    const renewed = { ...task, claimBy: now + task.claimMs };
    this.#options.tasks.put(tx, task.id, renewed);
    return renewed;
  }

  #nextParked(tx: Tx, key: ParkingKey): TaskRow | null {
    const { limits, tasks } = this.#options;
    for (let place = limits.nextParked(key); place !== undefined; place = limits.nextParked(key)) {
      const parked = place;
      tx.undo(() => limits.park(key, parked));
      const task = tasks.get(tx, parked.id);
      if (task?.state === "queued" && task.sequence === parked.sequence) return task;
    }
    return null;
  }

  /** Adds a waiting claim, which gets the next ready task. */
  wait(tx: Tx, group: ClaimGroup, { holder, termMs, offerMs }: Omit<HandOut, "now">, standing: Standing): Leave {
    const waiter = new Waiter({
      group,
      holder,
      termMs,
      offerMs,
      arrival: ++this.#arrivals,
      settle: (task) => standing.settle(task),
    });
    tx.undo(() => waiter.reserve());
    return () => waiter.leave();
  }

  /** Returns whether the task was parked. */
  #unpark(tx: Tx, task: TaskRow): boolean {
    const { limits } = this.#options;
    const { lane } = task;
    const place = placeOf(task);
    const keys = lane === null ? [] : task.limits.map((limit) => parkingKey(limit, lane)).filter((key) => limits.isParked(key, place));
    for (const key of keys) {
      limits.unpark(key, place);
      tx.undo(() => limits.park(key, place));
    }
    return keys.length > 0;
  }

  #park(tx: Tx, task: TaskRow, blocked: Blocked, now: number): void {
    const { limits, deadline } = this.#options;
    if (task.lane === null) return;
    const key = parkingKey(blocked.limit, task.lane);
    const place = placeOf(task);
    limits.park(key, place);
    tx.undo(() => limits.unpark(key, place));
    // A window opens at a known time; a permit is returned at the end of a hold.
    if (blocked.freeAt !== null) tx.after(() => deadline(task.id, blocked.freeAt));
    // The task may have been woken for room under another key, which it does not take now.
    this.#wakeAlike(tx, task, now, blocked.limit);
  }
}

/** Marks the task as held by a worker: the attempt starts, if an earlier hold has not started it. */
export function begun(task: TaskRow, now: number): TaskRow {
  const held = copyOf(task);
  begin(held, now);
  return held;
}

function begin(task: TaskCopy, now: number): void {
  task.state = "held";
  task.startedAt ??= now;
  task.claimedAt = now;
  task.endBy ??= task.endMs === null ? null : now + task.endMs;
}

/** Returns the shorter of what the task allows and what the claim requests. 0 means without a limit. */
export function termOf(task: TaskRow, requestedMs: number): number {
  if (task.holdMs === null || task.holdMs === 0) return task.holdMs === 0 && requestedMs === 0 ? 0 : requestedMs;
  return requestedMs === 0 ? task.holdMs : Math.min(task.holdMs, requestedMs);
}

export function placeOf(task: Place): Place {
  return { id: task.id, priority: task.priority, sequence: task.sequence };
}
