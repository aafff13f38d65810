// Several worker processes as one worker, with one set of listeners, one `/metrics`, one `/health` and one way to stop. Each process runs
// an ordinary worker with its own connections, and sends its log, metrics and failures to this one.

import { type Clock, pause, systemClock } from "../../core/clock.ts";
import { type Duration, durationMs } from "../../core/duration.ts";
import { keepProcessAlive } from "../../core/process-keepalive.ts";
import { onTermination, type SignalSource } from "../../core/signal.ts";
import { Events, eventNames, type Listeners } from "../events.ts";
import { allAlive, type WorkerStatuses } from "../health.ts";
import { type HttpHandle, type HttpOptions, serveWorker } from "../http.ts";
import { type WorkerMetrics, workerMetrics } from "../instruments.ts";
import { type Logger, stderrLogger } from "../notices.ts";
import { type RestartOptions, restartConfig } from "../restarts.ts";
import { unpackEvent } from "./messages.ts";
import { Supervisor, type WorkerProcess } from "./supervisor.ts";
import { startWorkerProcess } from "./worker-process.ts";

export interface SuperviseOptions {
  /** The workers, each in one process. `work` is data for the program of the process. */
  readonly workers: readonly { readonly tasks: readonly string[]; readonly work: unknown }[];
  /** The program of every process, which calls `runSupervised`. */
  readonly entry: URL;
  readonly restarts?: RestartOptions;
  /**
   * How long a process may take to end after SIGTERM; then it is killed. It should be longer than the drain of the process. Default: 35 s.
   */
  readonly stopGrace?: Duration;
  readonly listeners?: readonly Listeners[];
  readonly http?: HttpOptions;
  readonly metrics?: boolean;
  /** Whether SIGINT and SIGTERM stop everything, and a second signal forces it. Default: true. */
  readonly signals?: boolean | SignalSource;
  readonly logger?: Logger | false;
  readonly clock?: Clock;
}

export interface SupervisedHandle extends AsyncDisposable {
  /** Drains and ends every process. `force` aborts running tasks. May be called at any time and any number of times. */
  stop(options?: { readonly force?: boolean }): Promise<void>;
  readonly closed: Promise<void>;
  workers(): WorkerStatuses;
  /** False when a process has ended or its event loop is blocked. */
  isHealthy(): boolean;
  metrics(): string;
  readonly httpUrl: string | undefined;
}

/** Drain, abort grace, last reports and the stop of transports together (30 s), plus 5 s. */
const stopGraceMsDefault = 35_000;
/** The same line from several processes within this time is logged once, because all of them call the same server. */
const sameLineMs = 5_000;
/** How many lines are remembered, to recognise repeated ones. */
const linesMax = 100;
/** How long listeners may take for the last events. */
const listenersMs = 1_000;

/** Resolves when every process receives. When one cannot work with its options, ends all of them and rejects. */
export async function supervise(options: SuperviseOptions): Promise<SupervisedHandle> {
  const { clock = systemClock } = options;
  const logger = options.logger === false ? () => {} : (options.logger ?? stderrLogger);
  const events = new Events(clock, logger);
  for (const each of options.listeners ?? []) events.onAll(each);
  const metrics = metricsFor(options, events, () => supervisor.workers());
  const first = new Starts(options.workers.length);
  const start = processStarter(options, { clock, events, metrics, first, notice: onceEach(clock, logger) });
  const supervisor = new Supervisor(
    options.workers.map(({ tasks, work }, at) => ({ tasks, start: () => start(work, at) })),
    {
      clock,
      logger,
      restarts: restartConfig(options.restarts),
      stopMsMax: durationMs(options.stopGrace ?? stopGraceMsDefault, "stopGrace"),
      restarted: (tasks, restarts) => {
        countRestart(metrics, tasks);
        for (const task of tasks) events.emit("workerRestarted", { task, restarts });
      },
    },
  );
  const text = () => metrics?.registry.text() ?? "";
  const removeListeners = listenForSignals(options.signals ?? true, supervisor);
  // Between the end of a process and its restart, nothing else may keep this process alive.
  const letEnd = keepProcessAlive();
  let http: HttpHandle | undefined;
  const closed = supervisor.closed.then(async () => {
    letEnd();
    removeListeners();
    // A listener that never settles must not block the stop.
    await Promise.race([events.settled(), pause(clock, listenersMs)]);
    await http?.close();
  });
  const stop = async (how?: { readonly force?: boolean }) => {
    await supervisor.stop(how);
    await closed;
  };
  try {
    if (options.http !== undefined) http = await serveWorker(options.http, { metrics: text, workers: () => supervisor.workers() });
    await Promise.race([first.all, supervisor.closed]);
  } catch (error) {
    await stop({ force: true });
    throw error;
  }
  return {
    stop,
    closed,
    workers: () => supervisor.workers(),
    isHealthy: () => allAlive(supervisor.workers()),
    metrics: text,
    httpUrl: http?.url,
    [Symbol.asyncDispose]: () => stop(),
  };
}

interface Relay {
  readonly clock: Clock;
  readonly events: Events;
  readonly metrics: WorkerMetrics | undefined;
  readonly notice: Logger;
  readonly first: Starts;
}

/** Starts the process of one worker; its events, metrics and log lines are merged with those of the others. */
function processStarter({ entry, listeners = [] }: SuperviseOptions, relay: Relay): (work: unknown, at: number) => WorkerProcess {
  const { clock, events, metrics, notice, first } = relay;
  const wanted = eventNames.filter((name) => listeners.some((each) => typeof each[name] === "function"));
  return (work, at) =>
    startWorkerProcess({
      clock,
      entry,
      begin: { kind: "begin", work, events: wanted, metrics: metrics !== undefined },
      started: () => first.started(at),
      refused: (error) => {
        // At the first start, the caller of `supervise` receives the error.
        if (!first.refused(error)) notice({ level: "error", message: error.message });
      },
      metrics: (deltas) => metrics?.registry.absorb(deltas),
      event: (sent) => events.emit(sent.name, unpackEvent(sent) as never),
      notice,
    });
}

function metricsFor({ http, metrics: wanted }: SuperviseOptions, events: Events, workers: () => WorkerStatuses): WorkerMetrics | undefined {
  if (http === undefined && wanted !== true) return undefined;
  const metrics = workerMetrics(() => activeTasks(workers()));
  events.onDropped(() => metrics.eventsDropped.with().add());
  return metrics;
}

function listenForSignals(source: boolean | SignalSource, supervisor: Supervisor): () => void {
  if (source === false) return () => {};
  const force = () => void supervisor.stop({ force: true });
  return onTermination(source === true ? process : source, () => void supervisor.stop(), force);
}

/** The first start of all processes: when one of them fails, all are ended. */
class Starts {
  readonly all: Promise<void>;
  readonly #left: Set<number>;
  #over = false;
  #resolve: () => void = () => {};
  #reject: (error: Error) => void = () => {};

  constructor(count: number) {
    this.#left = new Set(Array(count).keys());
    this.all = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.all.catch(() => {});
    this.#look();
  }

  started(at: number): void {
    this.#left.delete(at);
    this.#look();
  }

  /** Returns false when everything had started before. */
  refused(error: Error): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.#reject(error);
    return true;
  }

  #look(): void {
    if (this.#left.size > 0 || this.#over) return;
    this.#over = true;
    this.#resolve();
  }
}

function countRestart(metrics: WorkerMetrics | undefined, tasks: readonly string[]): void {
  for (const task of tasks) metrics?.restarts.with(task).add();
}

function activeTasks(workers: WorkerStatuses): { labels: string[]; value: number }[] {
  return Object.values(workers).map(({ worker, inFlight }) => ({ labels: [worker], value: inFlight }));
}

function onceEach(clock: Clock, logger: Logger): Logger {
  const toldMs = new Map<string, number>();
  return (notice) => {
    const now = clock.now();
    const lastMs = toldMs.get(notice.message);
    toldMs.delete(notice.message);
    toldMs.set(notice.message, now);
    if (toldMs.size > linesMax) toldMs.delete(toldMs.keys().next().value as string);
    if (lastMs === undefined || now - lastMs > sameLineMs) logger(notice);
  };
}
