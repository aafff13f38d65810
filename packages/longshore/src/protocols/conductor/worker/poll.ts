// The poll loop of one task type. It requests exactly as many tasks as it can start now, and polls again as soon as it can start more.
//
// After a poll with tasks, or when a task has ended in the meantime, the next one follows at once. After empty ones it waits: 1, 2, 4, 8
// ... ms, and the poll interval from the tenth on. If the user has not set how long polls wait at the server, a poll after an empty one
// waits there for up to five seconds instead. It then requests a single task, because some servers collect all requested tasks before they
// reply.
//
// There are three separate counters: empty polls, refused ones (401, 403: 2, 4, 8 ... 60 s) and failed ones (2, 4, 8 ... 120 s).

import { type Backoff, backoffMs } from "../../../core/backoff.ts";
import { pause } from "../../../core/clock.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { poll } from "../../../runner/poll.ts";
import type { Slot, TransportHost } from "../../../runner/transport.ts";
import { isOfType, type PolledTask, pollCountMax, pollTimeoutMsMax } from "../wire/shapes.ts";
import type { Client, PollAnswer } from "./client.ts";
import type { WorkerConfig } from "./config.ts";
import { PolledWork, type WorkSurroundings } from "./lease.ts";
import { givenBack } from "./result.ts";

const authPolicy: Backoff = { kind: "exponential", delayMs: 2_000, maxMs: 60_000 };
const failurePolicy: Backoff = { kind: "exponential", delayMs: 2_000, maxMs: 120_000 };
/** Each refusal is logged until the pause has reached its maximum; after that nothing changes. */
const refusalsLoggedMax = 6;
/** Jitter after failures, so that workers that lost the same server do not return together. */
const failureJitter = 0.2;
/** From this empty poll on the wait is the poll interval itself. */
const emptyPollsMax = 10;
const registerTriesMax = 3;
const mistakeMs = 1_000;

export interface PollerOptions {
  readonly host: TransportHost;
  readonly client: Client;
  readonly config: WorkerConfig;
  /** The longest time that an empty poll may wait at the server, because other polls need its slot. */
  readonly waitMsMax: number;
  readonly around: (own: Pick<WorkSurroundings, "mayChain" | "misplaced">) => WorkSurroundings;
  /** Whether another poller of this worker waits for a slot. */
  readonly othersWait: (self: Poller) => boolean;
  /** Called before the first poll, and repeated until it returns true. */
  readonly register: () => Promise<boolean>;
}

export class Poller {
  readonly config: WorkerConfig;
  readonly #options: PollerOptions;
  readonly #around: WorkSurroundings;
  /** Tasks that exceeded the requested number. */
  readonly #surplus: PolledTask[] = [];
  #running = 0;
  #paused: boolean;
  #waitsForSlot = false;
  #registered: boolean;
  #emptyPolls = 0;
  #refusals = 0;
  #failures = 0;
  #freedMeanwhile = false;
  /** Aborting it ends a wait. */
  #bell = new AbortController();
  #poll = new AbortController();
  /** Whether the server takes back tasks of aborted polls; undefined before its first response. */
  #returns: boolean | undefined;
  #registerFailures = 0;

  constructor(options: PollerOptions) {
    this.#options = options;
    this.config = options.config;
    this.#paused = options.config.paused;
    this.#registered = !options.config.registerTaskDef;
    this.#around = options.around({
      mayChain: () => !this.#paused && !options.othersWait(this),
      misplaced: (tasks) => this.#giveBackMisplaced(tasks),
    });
  }

  get waitsForSlot(): boolean {
    return this.#waitsForSlot;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Polls until the worker drains; resolves when nothing more can arrive. */
  async run(): Promise<void> {
    const { host } = this.#options;
    host.draining.addEventListener("abort", () => this.#drain(), { once: true });
    host.forced.addEventListener("abort", () => this.#poll.abort(), { once: true });
    if (this.#paused) this.#tell("paused");
    while (!host.draining.aborted) {
      if (this.#surplus.length > 0) await this.#startSurplus();
      else if (this.#running >= this.config.threadCount) await this.#rest(Number.POSITIVE_INFINITY);
      else if (this.#paused) await this.#rest(Number.POSITIVE_INFINITY);
      else await this.#turn().catch((error) => this.#onMistake(error));
    }
    for (const task of this.#surplus.splice(0)) await this.#giveBack(task);
  }

  pause(): void {
    if (this.#paused) return;
    this.#paused = true;
    this.#tell("paused");
  }

  resume(): void {
    if (!this.#paused) return;
    this.#paused = false;
    this.#tell("resumed");
    this.#ring();
  }

  /** One poll, and the start of its tasks. */
  async #turn(): Promise<void> {
    const { host } = this.#options;
    if (!this.#registered) await this.#register();
    const idle = this.config.longPoll && this.#emptyPolls > 0;
    const slots = await this.#slots(idle ? 1 : Math.min(this.config.threadCount - this.#running, pollCountMax));
    if (slots.length === 0) return;
    const waitMs = idle ? Math.min(pollTimeoutMsMax, this.#options.waitMsMax) : this.config.pollTimeoutMs;
    const startedMs = host.clock.now();
    this.#freedMeanwhile = false;
    let answer: PollAnswer;
    try {
      answer = await this.#ask(slots.length, waitMs);
    } catch (error) {
      for (const slot of slots) slot.release();
      return this.#onFailure(error);
    }
    this.#refusals = 0;
    this.#failures = 0;
    const tasks = answer.tasks.filter((task) => isOfType(task, this.config.task));
    this.#start(slots, { ...answer, tasks });
    if (tasks.length < answer.tasks.length) {
      await this.#giveBackMisplaced(answer.tasks.filter((task) => !isOfType(task, this.config.task)));
    }
    if (tasks.length > 0) this.#emptyPolls = 0;
    else await this.#restAfterEmpty(idle ? host.clock.now() - startedMs : 0);
  }

  /** A turn never throws, except through a mistake of ours. This must not end the polling. */
  async #onMistake(error: unknown): Promise<void> {
    const { host } = this.#options;
    host.failing("poll loop", error);
    await pause(host.clock, mistakeMs, host.draining);
  }

  /** A server that accepts polls but no registration must not prevent tasks from running. */
  async #register(): Promise<void> {
    const done = await this.#options.register();
    this.#registered = done || (this.#returns !== undefined && ++this.#registerFailures >= registerTriesMax);
  }

  /** Waits for one slot, then takes all free ones; none when the worker drains or was paused in the meantime. */
  async #slots(count: number): Promise<readonly Slot[]> {
    const { slots } = this.#options.host;
    const free = slots.takeFree(count);
    if (free.length > 0) return free;
    this.#waitsForSlot = true;
    const first = await slots.take();
    this.#waitsForSlot = false;
    if (first === undefined) return [];
    if (!this.#paused) return [first, ...slots.takeFree(count - 1)];
    first.release();
    return [];
  }

  #ask(count: number, timeoutMs: number): Promise<PollAnswer> {
    const { host, client } = this.#options;
    const { task, workerId, domain } = this.config;
    const call = async () => {
      const answer = await client.poll({ task, workerId, domain, count, timeoutMs }, this.#poll.signal);
      host.working(`poll of ${task}`);
      this.#returns = answer.returns;
      return answer;
    };
    return poll(host, { task, worker: workerId, count, call, received: ({ tasks }) => tasks.length });
  }

  #start(slots: readonly Slot[], { tasks, malformed, left }: PollAnswer): void {
    const { host } = this.#options;
    if (malformed > 0) {
      host.notice({ level: "warn", message: `A poll of ${this.config.task} brought ${malformed} entries without ids, which are skipped.` });
    }
    if (left > 0) {
      const message = `A poll of ${this.config.task} for ${slots.length} tasks brought ${tasks.length + malformed + left}; ${left} of them are left to the server's response timeout.`;
      host.notice({ level: "warn", message });
    }
    if (host.draining.aborted) {
      // It is too late to use the slots, so they are released at once for other work.
      for (const slot of slots) slot.release();
      this.#surplus.push(...tasks);
      return;
    }
    slots.forEach((slot, at) => {
      const task = tasks[at];
      if (task === undefined) slot.release();
      else this.#run(slot, task);
    });
    for (const task of tasks.slice(slots.length)) {
      this.#surplus.push(task);
      this.#tell("slotsFull");
    }
  }

  #run(slot: Slot, task: PolledTask): void {
    this.#running++;
    void slot.run(new PolledWork(task, this.#around)).then(() => {
      this.#running--;
      this.#freedMeanwhile = true;
      this.#ring();
    });
  }

  /** Surplus tasks wait here for a slot; nothing is requested in the meantime. */
  async #startSurplus(): Promise<void> {
    if (this.#running >= this.config.threadCount) return this.#rest(Number.POSITIVE_INFINITY);
    this.#waitsForSlot = true;
    const slot = await this.#options.host.slots.take();
    this.#waitsForSlot = false;
    if (slot !== undefined) this.#run(slot, this.#surplus.shift() as PolledTask);
  }

  /** The handler of one type must not get the input of another. */
  async #giveBackMisplaced(tasks: readonly PolledTask[]): Promise<void> {
    const { task } = this.config;
    const [first] = tasks;
    const which = `${tasks.length} of another type, such as ${first?.taskId} of ${JSON.stringify(first?.taskDefName)}`;
    this.#options.host.notice({ level: "warn", message: `The server brought a worker of ${task} tasks that are given back: ${which}.` });
    for (const each of tasks) await this.#giveBack(each);
  }

  async #giveBack(task: PolledTask): Promise<void> {
    const { host, client } = this.#options;
    try {
      await client.update(JSON.stringify(givenBack(task, this.config.workerId)));
    } catch (error) {
      // The server hands it out again after its response timeout.
      host.failing("giving back a task", error);
    }
  }

  async #restAfterEmpty(waitedMs: number): Promise<void> {
    this.#emptyPolls++;
    if (this.#freedMeanwhile) return;
    const waitMs = emptyWaitMs(this.#emptyPolls, this.config.pollIntervalMs) - waitedMs;
    if (waitMs > 0) await this.#rest(waitMs);
  }

  async #onFailure(error: unknown): Promise<void> {
    const { host } = this.#options;
    if (host.draining.aborted) return;
    host.failing(`poll of ${this.config.task}`, error);
    if (!(error instanceof LongshoreError) || error.code !== "LONGSHORE_UNAUTHORIZED") {
      const waitMs = backoffMs(failurePolicy, ++this.#failures, 0) * (1 + failureJitter * Math.random());
      return pause(host.clock, waitMs, host.draining);
    }
    const waitMs = backoffMs(authPolicy, ++this.#refusals, 0);
    // The first one has just been reported as a failure.
    if (this.#refusals > 1 && this.#refusals <= refusalsLoggedMax) {
      const message = `Polls of ${this.config.task} were refused ${this.#refusals} times in a row; the next one is in ${waitMs / 1_000} s: ${error.message}`;
      host.notice({ level: "warn", message });
    }
    await pause(host.clock, waitMs, host.draining);
  }

  /** Waits, or returns early when a slot is free, polling is resumed or the worker drains. */
  async #rest(ms: number): Promise<void> {
    if (this.#options.host.draining.aborted) return;
    this.#bell = new AbortController();
    await pause(this.#options.host.clock, ms, this.#bell.signal);
  }

  #ring(): void {
    this.#bell.abort();
  }

  /** Aborts a poll in progress only when that loses no task. */
  #drain(): void {
    if (this.#returns) this.#poll.abort();
    this.#ring();
  }

  #tell(name: "paused" | "resumed" | "slotsFull"): void {
    this.#options.host.emit(name, { task: this.config.task, worker: this.config.workerId });
  }
}

/** How long to wait after the `count`th empty poll in a row. */
export function emptyWaitMs(count: number, pollIntervalMs: number): number {
  return count >= emptyPollsMax ? pollIntervalMs : Math.min(2 ** (count - 1), pollIntervalMs);
}
