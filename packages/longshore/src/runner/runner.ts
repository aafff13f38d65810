// A worker: slots shared by transports, the executions in these slots, and the transition from running to stopped.
//
// States. `running`: transports take slots and receive. `draining`: nothing is received; running tasks may end within the drain time.
// `stopped`: nothing runs, every report is settled or given up, every connection is closed. Only `stop` changes the state, and only
// forward.

import { setMaxListeners } from "node:events";
import { formatDuration } from "../core/duration.ts";
import { LongshoreError } from "../core/errors.ts";
import { counted } from "../core/text.ts";
import { defaultDrainMs, defaultSlots, type RunnerConfig } from "./config.ts";
import { Events } from "./events.ts";
import { accept, execute } from "./execute.ts";
import type { Execution, Surroundings } from "./execution.ts";
import { HealthWatch, type WorkerStatuses } from "./health.ts";
import type { Isolates } from "./isolate/isolates.ts";
import { blockedMsMin, LoopWatch } from "./loop-watch.ts";
import { Episodes, sparing } from "./notices.ts";
import { SlotPool } from "./slots.ts";
import { type Counts, countEvents, type RunnerStatus } from "./status.ts";
import type { Assignment, Slot, Transport, TransportHost, TransportSlots } from "./transport.ts";

/** How long the last reports may take after everything was aborted, and how long a transport may take to stop. */
const lastReportsMs = 3_000;
const letGoMs = 2_000;
/** How long listeners may take for the last events. */
const listenersMs = 1_000;
/** How long a transport may hold a slot while it waits for work, when other transports may need the slot. */
const sharedWaitMsMax = 1_000;

interface Attached {
  readonly transport: Transport;
  readonly episodes: Episodes;
}

export class Runner {
  readonly events: Events;
  /** Resolves when the worker has stopped completely. Never rejects. */
  readonly closed: Promise<void>;
  readonly #config: RunnerConfig;
  readonly #attached: readonly Attached[];
  readonly #pool: SlotPool;
  readonly #drainMs: number;
  readonly #running = new Set<Execution>();
  readonly #draining = new AbortController();
  readonly #forced = new AbortController();
  readonly #giveUp = new AbortController();
  readonly #watch: LoopWatch;
  readonly #health: HealthWatch;
  readonly #isolates: Isolates | undefined;
  /** The task whose handler last blocked the event loop, as far as known. */
  #blocker: string | undefined;
  readonly #counts: Counts;
  #state: RunnerStatus["state"] = "running";
  /** The number of slots in use. When the answer to a report brings the next assignment, the slot stays in use in between. */
  #occupied = 0;
  #aborting = false;
  #stopping: Promise<void> | undefined;
  #resolveClosed: () => void = () => {};
  #resolveStarted: () => void = () => {};
  readonly #started = new Promise<void>((resolve) => {
    this.#resolveStarted = resolve;
  });
  #onIdle: () => void = () => {};

  constructor(config: RunnerConfig, transports: readonly Transport[], isolates?: Isolates) {
    this.#config = config;
    this.#isolates = isolates;
    this.events = new Events(config.clock, config.logger);
    this.#pool = new SlotPool(config.slots ?? defaultSlots(config.tasks, transports));
    this.#drainMs = config.drainMs ?? defaultDrainMs(transports);
    this.#attached = transports.map((transport) => ({ transport, episodes: new Episodes(config.clock, config.logger, transport.name) }));
    this.#watch = new LoopWatch(config.clock, (blockedMs) => this.#onBlocked(blockedMs));
    this.#health = new HealthWatch(this.events, config.clock);
    this.#counts = countEvents(this.events);
    this.closed = new Promise((resolve) => {
      this.#resolveClosed = resolve;
    });
    // Every running task may listen to these signals. Without this, Node warns of a leak from the eleventh listener on.
    setMaxListeners(0, this.#draining.signal, this.#forced.signal, this.#giveUp.signal);
    this.#tellAboutTrouble();
  }

  /** Resolves when every transport receives. When one rejects, everything is stopped again. */
  async start(): Promise<void> {
    try {
      await Promise.all(this.#attached.map((attached) => attached.transport.start(this.#hostFor(attached))));
      // In the next turn, so that a caller that awaits the start has added its listeners.
      setImmediate(this.#resolveStarted);
    } catch (error) {
      await this.stop({ force: true });
      throw error;
    }
  }

  /**
   * Stops receiving, lets running tasks end, then aborts the rest. `force` aborts at once, also during a stop that is already in progress.
   */
  stop(options: { readonly force?: boolean } = {}): Promise<void> {
    if (options.force === true) this.#forced.abort();
    this.#stopping ??= this.#stop();
    return this.#stopping;
  }

  status(): RunnerStatus {
    const { clock } = this.#config;
    return {
      state: this.#state,
      slots: { total: this.#pool.total, free: this.#pool.total - this.#occupied },
      tasks: [...this.#config.tasks.keys()],
      running: [...this.#running].map((execution) => ({ ...execution.event(), runningMs: clock.now() - execution.startedMs })),
      counts: { ...this.#counts, eventsDropped: this.events.dropped },
      transports: this.#attached.map(({ transport, episodes }) => ({
        name: transport.name,
        failing: episodes.current === undefined ? undefined : { sinceMs: episodes.current.sinceMs, error: episodes.current.error.message },
      })),
    };
  }

  /** One entry for each task, as in `/health`. */
  workers(): WorkerStatuses {
    const alive = this.#state !== "stopped";
    const inFlight = this.inFlight();
    return Object.fromEntries(
      [...inFlight].map(([task, running]) => [
        task,
        { worker: task, alive, pid: process.pid, exitCode: null, ...this.#health.of(task), inFlight: running },
      ]),
    );
  }

  /** How many calls of each task run now. */
  inFlight(): ReadonlyMap<string, number> {
    const counts = new Map([...this.#config.tasks.keys()].map((task) => [task, 0]));
    for (const { taskName } of this.#running) if (counts.has(taskName)) counts.set(taskName, (counts.get(taskName) ?? 0) + 1);
    return counts;
  }

  async #stop(): Promise<void> {
    const { clock, abortGraceMs } = this.#config;
    this.#state = "draining";
    this.#draining.abort();
    this.#pool.close();
    const drained = Promise.allSettled(this.#attached.map(({ transport }) => transport.drain())).then(() => this.#idle());
    await this.#until(drained, this.#drainMs, this.#forced.signal);
    this.#aborting = true;
    for (const execution of this.#running) execution.stop(shutdown());
    const patient = clock.at(clock.now() + abortGraceMs + lastReportsMs, () => this.#giveUp.abort());
    await this.#until(drained, abortGraceMs + lastReportsMs + letGoMs);
    patient();
    await this.#until(Promise.allSettled(this.#attached.map(({ transport }) => transport.stop())), letGoMs);
    await this.#until(this.events.settled(), listenersMs, this.#forced.signal);
    this.#watch.stop();
    this.#state = "stopped";
    this.#resolveClosed();
  }

  #hostFor(attached: Attached): TransportHost {
    const around = this.#surroundings(attached);
    return {
      tasks: this.#config.tasks,
      clock: this.#config.clock,
      slots: this.#slotsFor(around),
      draining: this.#draining.signal,
      forced: this.#forced.signal,
      waitMsMax: this.#attached.length > 1 ? sharedWaitMsMax : Number.POSITIVE_INFINITY,
      notice: sparing(this.#config.clock, this.#config.logger),
      failing: around.failing,
      working: around.working,
      emit: (name, event) => {
        if (this.events.wants(name)) this.events.emit(name, { ...event, transport: attached.transport.name } as never);
      },
      wants: (name) => this.events.wants(name),
    };
  }

  #surroundings({ transport, episodes }: Attached): Surroundings {
    let connected = false;
    return {
      transport,
      config: this.#config,
      events: this.events,
      isolates: this.#isolates,
      blocked: (task, blockedMs) => {
        if (blockedMs > blockedMsMin) this.#blocker = task;
      },
      draining: this.#draining.signal,
      giveUp: this.#giveUp.signal,
      ended: (kind) => {
        this.#counts[kind]++;
      },
      wantNext: () => !this.#draining.signal.aborted && !this.#pool.wantedByOthers(transport),
      failing: (what, error) => {
        if (!episodes.failing(what, error)) return;
        this.events.emit("failing", { transport: transport.name, what, error: (episodes.current as { error: Error }).error });
      },
      working: (what) => {
        this.#health.answered();
        if (!connected) {
          connected = true;
          void this.#started.then(() => this.events.emit("connected", { transport: transport.name }));
        }
        const failedMs = episodes.working(what);
        if (failedMs !== undefined) this.events.emit("working", { transport: transport.name, what, failedMs });
      },
    };
  }

  #slotsFor(around: Surroundings): TransportSlots {
    const pool = this.#pool;
    const draining = this.#draining.signal;
    return {
      total: pool.total,
      configured: this.#config.slots,
      get free() {
        return pool.free;
      },
      take: (signal) =>
        pool.take(around.transport, signal).then((isTaken) => {
          if (!isTaken) return undefined;
          if (!draining.aborted) return this.#slot(around);
          pool.release();
          return undefined;
        }),
      takeFree: (max = pool.total) => {
        if (draining.aborted) return [];
        return Array.from({ length: pool.takeFree(max) }, () => this.#slot(around));
      },
    };
  }

  #slot(around: Surroundings): Slot {
    let used = false;
    const once = () => {
      const first = !used;
      used = true;
      return first;
    };
    return {
      run: (assignment) => (once() ? this.#runInSlot(assignment, around) : Promise.resolve()),
      release: () => {
        if (once()) this.#pool.release();
      },
    };
  }

  async #runInSlot(first: Assignment, around: Surroundings): Promise<void> {
    this.#occupied++;
    for (let next: Assignment | undefined = first; next !== undefined; ) {
      const execution = this.#accept(next, around);
      try {
        next = await execute(execution);
      } catch (error) {
        // The pipeline should never throw. If it does, that is a bug in Longshore, and the slot must still be released.
        around.failing("execution", error);
        next = undefined;
      }
      if (this.#running.size === 1) this.#watch.pause();
      this.#running.delete(execution);
    }
    this.#occupied--;
    this.#pool.release();
    if (this.#occupied === 0) this.#onIdle();
  }

  #accept(assignment: Assignment, around: Surroundings): Execution {
    const execution = accept(assignment, around);
    this.#running.add(execution);
    this.#watch.start();
    // A task that arrives while everything is being aborted must be aborted too. Otherwise it would run without a limit.
    if (this.#aborting) execution.stop(shutdown());
    return execution;
  }

  #idle(): Promise<void> {
    if (this.#occupied === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  /** Waits for `work`, for at most `ms`, and not after `signal` aborts. */
  #until(work: Promise<unknown>, ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        disarm();
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const disarm = this.#config.clock.at(this.#config.clock.now() + ms, done);
      if (signal?.aborted) return done();
      signal?.addEventListener("abort", done, { once: true });
      work.then(done, done);
    });
  }

  #onBlocked(blockedMs: number): void {
    const tasks = this.#blocker === undefined ? [...this.#running].map((execution) => execution.taskName) : [this.#blocker];
    this.#blocker = undefined;
    this.events.emit("loopBlocked", { blockedMs, tasks });
    const names = [...new Set(tasks)].map((name) => `"${name}"`).join(", ");
    const message = `The event loop was blocked for ${formatDuration(blockedMs)} while running ${names}: heartbeats were late and leases may be lost. Let a handler that computes run in a thread: isolate: "thread", module: import.meta.url.`;
    this.#config.logger({ level: "warn", message });
  }

  #tellAboutTrouble(): void {
    const { logger } = this.#config;
    this.events.watch("taskAbandoned", ({ task, ids, graceMs }) => {
      const message = `Task "${task}" (${ids.taskId}) did not end within ${formatDuration(graceMs)} after its signal aborted; its slot is used for other work while it continues. Pass ctx.signal to the calls that it awaits.`;
      logger({ level: "warn", message });
    });
    this.events.watch("logsDropped", ({ task, ids, lines }) => {
      logger({
        level: "warn",
        message: `Lost, because they could not be sent: ${counted(lines, "log line")} of task "${task}" (${ids.taskId}).`,
      });
    });
    this.events.watch("updateFailed", ({ task, ids, tries, error }) => {
      const message = `The result of task "${task}" (${ids.taskId}) could not be reported in ${tries === 1 ? "one try" : `${tries} tries`}: ${error.message}`;
      logger({ level: "error", message });
    });
    this.events.watch("taskStopped", ({ task, ids, reason }) => {
      if (reason.code === "LONGSHORE_LEASE_LOST") logger({ level: "warn", message: `Task "${task}" (${ids.taskId}): ${reason.message}` });
    });
  }
}

function shutdown(): LongshoreError {
  return new LongshoreError("LONGSHORE_SHUTDOWN", "The worker is shutting down.");
}
