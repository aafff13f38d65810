// The list of workers: all that registered, claimed or hold a task. It is for display, and to explain why a task waits. It is kept in
// memory. Registrations are written from time to time, so that they survive a restart.
//
//   busy     holds at least one task
//   idle     holds none, and was active recently
//   unheard  is known from before the server started, and has been silent since: it may be running or not
//   offline has signed off, or was silent for three of its intervals, or for the longest term of what it holds if that is longer; its next
//           request of any kind ends this state

import type { Clock } from "../../core/clock.ts";
import { checkName } from "../../core/names.ts";
import { Slices, wholeRow } from "../../core/slices/slices.ts";
import { sortInSlices } from "../../core/slices/sort-slices.ts";
import { agentCharsMax } from "../../core/worker-agent.ts";
import type { Halt } from "./halts.ts";
import { laneKey, type Reach } from "./lanes.ts";
import { isOpen, type Lane, type TaskRow } from "./task.ts";
import type { Arrival, Registration, Sign, Unwritten, WorkerHold, WorkerStatus, WorkerView } from "./worker-view.ts";
import { asks, charsOf, isSameList, isSameReach, type Words } from "./worker-words.ts";

interface Worker extends Words {
  id: string;
  protocol: string;
  registered: boolean;
  registeredAt: number;
  seenAt: number;
  everyMs: number;
  readonly holds: Map<string, WorkerHold>;
  /** The longest term among what it holds, from which its heartbeats are expected. */
  termMs: number;
  /** The value of `seenAt` that was last written. */
  writtenAt: number;
  /** The worker has signed off. */
  left: boolean;
  /** False for a worker of an earlier process, until it is active. */
  heard: boolean;
  /** The time from which its silence is measured, if that is later than `seenAt`. */
  awaitedAt: number;
  /** The size of its labels and names. */
  chars: number;
  agent: string | null;
  slots: number | null;
  version: string | null;
}

export interface WorkersOptions {
  /** Default: no worker is cordoned. */
  cordonOf?: ((worker: string) => Halt | undefined) | undefined;
  clock: Clock;
  /** For lists, which may be long. */
  slices?: Slices;
  /** Called when there is something to write: see `unwritten`. Called again only after `written`. */
  changed?: () => void;
}

/** The expected interval of a worker that does not report one: common pollers poll every 2 s and send a heartbeat every 10 s. */
const intervalMs = 10_000;
const intervalsMissedMax = 3;
/** A worker is removed from the list after this long without a request. */
const forgetMs = 86_400_000;
/** The time of the last request is written at most this often; a restart needs no more. */
const writeMs = 60_000;
/** Maximum number of workers in the list. Above it, those silent for longest are removed, a tenth at a time. */
const workersMax = 10_000;
/**
 * Maximum number of characters of their labels and names together, 64 MB at most; each label and name counts 16 characters more. Above it,
 * the workers silent for longest are removed.
 */
const wordCharsMax = 33_554_432;
/** In a list, this many labels, names and tasks of a worker cost as much as one row. */
const wordsPerRow = 16;

export class Workers {
  readonly #options: WorkersOptions;
  readonly #clock: Clock;
  readonly #slices: Slices;
  readonly #workers = new Map<string, Worker>();
  readonly #holders = new Map<string, string>();
  /** The number of held tasks by the key of their lane. */
  readonly #heldOf = new Map<string, number>();
  readonly #unwritten = new Set<string>();
  readonly #forgotten = new Set<string>();
  #chars = 0;

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#slices = options.slices ?? new Slices();
  }

  /** Restores a worker that was registered with an earlier process. */
  restore({ id, ...row }: Registration): void {
    const worker = this.#of(id);
    Object.assign(worker, row, { registered: true, writtenAt: row.seenAt, heard: false });
    this.#weigh(worker);
  }

  /** Adds a worker known from before the start. This is not a request of the worker. Its interval counts as if it had just been active. */
  recall(id: string, { protocol = "", reach, everyMs = 0 }: Sign): void {
    if (this.#workers.get(id)?.heard === true) return;
    const known = { protocol, reach: reach ?? null, everyMs: Math.max(intervalMs, everyMs) };
    const worker = this.#of(id);
    Object.assign(worker, known, { registered: true, heard: false, awaitedAt: this.#clock.now() });
    this.#weigh(worker);
  }

  /** Registers a worker. A second registration replaces the first one, with its labels. */
  register(id: string, protocol: string, labels: readonly string[], agent?: string): void {
    const worker = this.#of(id);
    worker.agent = agent?.slice(0, agentCharsMax) ?? worker.agent;
    const now = this.#clock.now();
    Object.assign(worker, {
      protocol,
      labels: [...labels],
      registered: true,
      registeredAt: now,
      seenAt: now,
      reach: null,
      does: null,
      everyMs: intervalMs,
      left: false,
      heard: true,
    });
    worker.polledAt.clear();
    this.#write(this.#unwritten, id);
  }

  /** Records any request of a worker: a claim, a heartbeat, a report. Cheap; also adds workers that never registered. */
  seen(id: string, sign: Sign = {}): void {
    const worker = this.#of(id);
    const before = worker.seenAt;
    worker.seenAt = this.#clock.now();
    worker.left = false;
    worker.heard = true;
    if (sign.protocol !== undefined) worker.protocol = sign.protocol;
    if (sign.agent !== undefined && sign.agent !== worker.agent) worker.agent = sign.agent.slice(0, agentCharsMax);
    if (sign.slots !== undefined) worker.slots = sign.slots;
    if (sign.version !== undefined) worker.version = sign.version;
    const { reach, does } = sign;
    if (reach !== undefined) worker.everyMs = Math.max(intervalMs, sign.everyMs ?? 0);
    // Most claims have the same names as the one before: then nothing new is kept.
    if (!isSameReach(worker.reach, reach) || !isSameList(worker.does, does)) {
      if (does !== undefined) worker.does = does;
      if (reach !== undefined) {
        asks(worker, reach, before);
        if (!worker.registered) worker.labels = reach.labels;
      }
      this.#weigh(worker);
    }
    if (worker.registered && worker.seenAt - worker.writtenAt >= writeMs) this.#write(this.#unwritten, id);
  }

  /** The worker signs off: it is offline at once, until it is active again. */
  left(id: string): void {
    const worker = this.#workers.get(id);
    if (worker !== undefined) worker.left = true;
  }

  /** The worker's process has ended: a worker that holds nothing is removed from the list. */
  ended(id: string): void {
    const worker = this.#workers.get(id);
    if (worker === undefined) return;
    worker.left = true;
    if (worker.holds.size === 0) this.#forget(worker);
  }

  /** True for a worker that registered, now or before a restart, and is still in the list. */
  known(id: string): boolean {
    return this.#workers.get(id)?.registered === true;
  }

  /** Must be called for each task that a commit changed, and at start for each task that is held. */
  changed(task: TaskRow): void {
    const holder = task.holder !== null && isOpen(task.state) && task.state !== "queued" ? task.holder : null;
    const before = this.#holders.get(task.id);
    if (before !== undefined && before !== holder) this.#drop(before, task);
    if (holder === null) return;
    const worker = this.#of(holder);
    this.#holders.set(task.id, holder);
    const lane = task.lane === null ? null : laneKey(task.lane);
    if (before !== holder) this.#countLane(lane, 1);
    worker.holds.set(task.id, { taskId: task.id, runId: task.runId, step: task.step, claimedAt: task.claimedAt ?? task.queuedAt, lane });
    worker.termMs = Math.max(worker.termMs, task.termMs);
  }

  /** All workers, each as it is when the iteration reaches it. */
  *views(): IterableIterator<WorkerView> {
    this.#forgetSilent();
    for (const worker of this.#workers.values()) yield this.#viewOf(worker);
  }

  /** The workers that follow `after`, in order of arrival, in slices. */
  async *inOrder(after?: Arrival): AsyncGenerator<WorkerView> {
    this.#forgetSilent();
    const arrivals: Arrival[] = [];
    for (const { id, registeredAt } of this.#workers.values()) {
      if (after === undefined || compareArrivals({ id, registeredAt }, after) > 0) arrivals.push({ id, registeredAt });
    }
    for (const { id } of await sortInSlices(arrivals, compareArrivals, this.#slices)) {
      const view = this.get(id);
      if (view === undefined) continue;
      await this.#slices.turn(wholeRow + Math.floor((view.labels.length + view.does.length + view.tasks.length) / wordsPerRow));
      yield view;
    }
  }

  countByStatus(): Record<WorkerStatus, number> {
    this.#forgetSilent();
    const counts = { idle: 0, busy: 0, unheard: 0, offline: 0 };
    const now = this.#clock.now();
    for (const worker of this.#workers.values()) counts[statusOf(worker, now)]++;
    return counts;
  }

  /** The number of tasks that workers hold. */
  get held(): number {
    return this.#holders.size;
  }

  /** The number of tasks of a lane that workers hold. */
  heldOf(lane: Lane): number {
    return this.#heldOf.get(laneKey(lane)) ?? 0;
  }

  #countLane(lane: string | null, more: 1 | -1): void {
    if (lane === null) return;
    const count = (this.#heldOf.get(lane) ?? 0) + more;
    if (count > 0) this.#heldOf.set(lane, count);
    else this.#heldOf.delete(lane);
  }

  /** The size of all labels and names. */
  get wordChars(): number {
    return this.#chars;
  }

  get(id: string): WorkerView | undefined {
    const worker = this.#workers.get(id);
    return worker === undefined ? undefined : this.#viewOf(worker);
  }

  get hasUnwritten(): boolean {
    return this.#unwritten.size + this.#forgotten.size > 0;
  }

  /** Returns what has to be written. The result stays pending until `written` is called. */
  unwritten(): Unwritten {
    const registrations: Registration[] = [];
    for (const id of this.#unwritten) {
      const worker = this.#workers.get(id);
      if (worker === undefined) continue;
      registrations.push({
        id,
        protocol: worker.protocol,
        labels: worker.labels,
        registeredAt: worker.registeredAt,
        seenAt: worker.seenAt,
      });
    }
    return { registrations, forgotten: [...this.#forgotten] };
  }

  /** To be called with changes that are durable now. What has changed since `unwritten` returned them has to be written again. */
  written({ registrations, forgotten }: Unwritten): void {
    for (const { id, protocol, labels, registeredAt, seenAt } of registrations) {
      const worker = this.#workers.get(id);
      if (worker !== undefined) worker.writtenAt = seenAt;
      const isSame = worker?.seenAt === seenAt && worker.registeredAt === registeredAt;
      if (worker === undefined || (isSame && worker.labels === labels && worker.protocol === protocol)) this.#unwritten.delete(id);
    }
    for (const id of forgotten) this.#forgotten.delete(id);
  }

  #viewOf(worker: Worker): WorkerView {
    return viewOf(worker, this.#clock.now(), this.#options.cordonOf?.(worker.id));
  }

  #write(list: Set<string>, id: string): void {
    const first = this.#unwritten.size + this.#forgotten.size === 0;
    list.add(id);
    if (first) this.#options.changed?.();
  }

  #of(id: string): Worker {
    const known = this.#workers.get(id);
    if (known !== undefined) return known;
    checkName(id, "id", "a worker");
    if (this.#workers.size >= workersMax) this.#makeRoom();
    const now = this.#clock.now();
    const fresh = { id, protocol: "", labels: [], registered: false, registeredAt: now, seenAt: now, reach: null, does: null };
    const kept = { polledAt: new Map<string, number>(), holds: new Map<string, WorkerHold>() };
    const state = { everyMs: intervalMs, termMs: 0, writtenAt: 0, left: false, heard: true, awaitedAt: 0, chars: 0 };
    const process = { agent: null, slots: null, version: null };
    const worker: Worker = { ...fresh, ...kept, ...state, ...process };
    this.#workers.set(id, worker);
    this.#forgotten.delete(id);
    return worker;
  }

  #drop(holder: string, task: TaskRow): void {
    this.#holders.delete(task.id);
    const worker = this.#workers.get(holder);
    if (worker === undefined) return;
    const hold = worker.holds.get(task.id);
    if (hold !== undefined) this.#countLane(hold.lane, -1);
    worker.holds.delete(task.id);
    if (worker.holds.size === 0) worker.termMs = 0;
    // A report is also a request of the worker: after a long task it may be the first in a while.
    if (task.closedBy !== "complete" && task.closedBy !== "fail") return;
    worker.seenAt = this.#clock.now();
    worker.heard = true;
  }

  #forgetSilent(): void {
    const before = this.#clock.now() - forgetMs;
    for (const worker of this.#workers.values()) if (silentSince(worker) < before && worker.holds.size === 0) this.#forget(worker);
  }

  /** The labels and names of all workers together have a limit, because workers choose them freely. */
  #weigh(worker: Worker): void {
    const chars = charsOf(worker);
    this.#chars += chars - worker.chars;
    worker.chars = chars;
    if (this.#chars > wordCharsMax) this.#makeRoom(worker);
  }

  /**
   * Removes the workers silent for longest, except those that hold a task. If that is not enough, workers with a task lose their labels and
   * names.
   */
  #makeRoom(except?: Worker): void {
    const silent = [...this.#workers.values()].filter((worker) => worker !== except).sort((a, b) => a.seenAt - b.seenAt);
    const isRoom = () => this.#workers.size <= workersMax * 0.9 && this.#chars <= wordCharsMax * 0.9;
    for (const worker of silent) {
      if (isRoom()) return;
      if (worker.holds.size === 0) this.#forget(worker);
    }
    for (const worker of silent) {
      if (this.#chars <= wordCharsMax * 0.9) return;
      if (worker.holds.size === 0) continue;
      worker.polledAt.clear();
      Object.assign(worker, { labels: [], reach: null, does: null });
      this.#chars -= worker.chars;
      worker.chars = 0;
    }
  }

  #forget(worker: Worker): void {
    this.#workers.delete(worker.id);
    this.#chars -= worker.chars;
    this.#unwritten.delete(worker.id);
    if (worker.registered) this.#write(this.#forgotten, worker.id);
  }
}

/** A claimed name is kept for as long as a silent worker counts as alive. */
function reachOf({ reach, polledAt, everyMs }: Worker, now: number): Reach | null {
  if (reach === null || polledAt.size === 0) return reach;
  const lately = [...polledAt].filter(([, at]) => now - at < intervalsMissedMax * everyMs).map(([name]) => name);
  return { names: [...reach.names, ...lately.reverse()], labels: reach.labels };
}

function viewOf(worker: Worker, now: number, cordoned: Halt | undefined): WorkerView {
  const { id, protocol, labels, registeredAt, seenAt, registered, does } = worker;
  const reach = reachOf(worker, now);
  return {
    id,
    protocol,
    labels,
    registeredAt,
    seenAt,
    registered,
    reach,
    does: does ?? reach?.names ?? [],
    status: statusOf(worker, now),
    cordoned,
    ...{ agent: worker.agent, slots: worker.slots, version: worker.version },
    tasks: [...worker.holds.values()],
  };
}

/** A holder may be silent for its whole term: not every worker sends heartbeats while it works. */
function statusOf(worker: Worker, now: number): WorkerStatus {
  const silenceMsMax = Math.max(intervalsMissedMax * worker.everyMs, worker.termMs);
  if (worker.left || now - silentSince(worker) >= silenceMsMax) return "offline";
  if (!worker.heard) return "unheard";
  return worker.holds.size > 0 ? "busy" : "idle";
}

function compareArrivals(a: Arrival, b: Arrival): number {
  return a.registeredAt - b.registeredAt || (a.id < b.id ? -1 : Number(a.id > b.id));
}

function silentSince({ seenAt, awaitedAt }: Worker): number {
  return Math.max(seenAt, awaitedAt);
}
