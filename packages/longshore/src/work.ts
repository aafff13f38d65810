// Starts a worker: `await work({ tasks, on })`. The returned handle stops it; until then the process stays alive.

import { LongshoreError } from "./core/errors.ts";
import { refuseWhileLoading } from "./core/load.ts";
import { keepProcessAlive } from "./core/process-keepalive.ts";
import type { Recorder } from "./core/recording.ts";
import { onTermination, type SignalSource } from "./core/signal.ts";
import type { Task } from "./core/task.ts";
import { counted } from "./core/text.ts";
import { workflowFamily } from "./core/workflow-family.ts";
import { type RunnerConfig, type RunnerOptions, runnerConfig } from "./runner/config.ts";
import type { EventName, Listener, Listeners, WorkerEvents } from "./runner/events.ts";
import { allAlive, type WorkerStatuses } from "./runner/health.ts";
import type { HttpHandle, HttpOptions, Pages } from "./runner/http.ts";
import { measure, type WorkerMetrics, workerMetrics } from "./runner/instruments.ts";
import type { Isolates, IsolatesOptions } from "./runner/isolate/isolates.ts";
import { Runner } from "./runner/runner.ts";
import type { RunnerStatus } from "./runner/status.ts";
import type { Telemetry } from "./runner/telemetry.ts";
import type { Transport, TransportSource } from "./runner/transport.ts";
import { type FunctionWorkflow, isFunctionWorkflow } from "./workflow.ts";
import type { Workflow } from "./workflow-value.ts";

/** A server in this process. */
export interface WorkSource extends TransportSource {
  /** Stores a workflow. `work()` calls it for its durable functions before it takes tasks, so that they can run each other by name. */
  define?(workflow: Workflow): Promise<unknown>;
}

/** The source of a worker's tasks: the transport of a protocol, or a server in this process. */
export type WorkTarget = Transport | WorkSource;

/** The options of `work()`. */
export interface WorkOptions extends RunnerOptions {
  /** The source of tasks: one transport, a server in this process, or several that share the slots. */
  readonly on: WorkTarget | readonly WorkTarget[];
  /** Durable functions whose turns this worker takes, with those that they name in `uses`. A server in this process also defines them. */
  readonly workflows?: readonly FunctionWorkflow[];
  /** Whether SIGINT and SIGTERM drain this worker, and a second signal forces it to stop. Default: true. */
  readonly signals?: boolean | SignalSource;
  /** Listeners from the start; `worker.on` adds more later. */
  readonly listeners?: readonly Listeners[];
  /** Serves `/metrics` (Prometheus text) and `/health`, on loopback by default. */
  readonly http?: HttpOptions;
  /** Receives spans and log records, such as `telemetry()` of `longshore/telemetry`. */
  readonly telemetry?: Telemetry;
  /** Whether `metrics()` counts without `http`. With `http` it always counts. */
  readonly metrics?: boolean;
  /** A file to which the worker appends every task that it takes and every reply to its reports; `longshore verify` reads it. */
  readonly record?: string;
}

/** A running worker. */
export interface WorkHandle extends AsyncDisposable {
  /** Drains, then stops. `force` aborts running tasks at once. May be called at any time and any number of times. */
  stop(options?: { readonly force?: boolean }): Promise<void>;
  /** Resolves when the worker has stopped completely, for any reason. */
  readonly closed: Promise<void>;
  status(): RunnerStatus;
  /** The health of each worker, by the name of its task; the content of `/health`. */
  workers(): WorkerStatuses;
  /** True while every worker is alive. */
  isHealthy(): boolean;
  /** The text of `/metrics`; empty without the option `http` or `metrics`. */
  metrics(): string;
  /** Where `/metrics` and `/health` are served. */
  readonly httpUrl: string | undefined;
  /** Adds a listener; the returned function removes it. The worker never waits for a listener. */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void;
}

/**
 * Starts a worker. Resolves when it accepts tasks; the orchestrator may become reachable later. Rejects only for mistakes in the options.
 */
export async function work(options: WorkOptions): Promise<WorkHandle> {
  refuseWhileLoading();
  return (await openWork(options)).handle;
}

/** For a process that works for another process: also returns the parts that the handle hides. */
export async function openWork(options: WorkOptions): Promise<{ handle: WorkHandle; runner: Runner; metrics: WorkerMetrics | undefined }> {
  const { telemetry } = options;
  const { logger = telemetry?.logger, tracer = telemetry?.tracer } = options;
  const transports = transportsOf(options.on);
  const workflows = workflowFamily<Workflow>(options.workflows ?? []);
  const tasks = [...options.tasks, ...(await functionTasks(workflows.filter(isFunctionWorkflow), transports))];
  const config = runnerConfig({ ...options, tasks, logger, tracer });
  const isolates = await makeIsolates(config, {
    crashed: (crash) => tellCrash(crash, runner, config),
    restarted: (restart) => runner.events.emit("workerRestarted", restart),
  });
  const runner = new Runner(config, transports, isolates);
  for (const each of options.listeners ?? []) runner.events.onAll(each);
  telemetry?.attach?.(runner.events);
  const recorder = await openRecording(options.record, runner);
  const metrics = options.http !== undefined || options.metrics === true ? measured(runner) : undefined;
  const removeListeners = listenForSignals(options.signals ?? true, runner, config);
  const letEnd = keepProcessAlive();
  let http: HttpHandle | undefined;
  const closed = runner.closed.then(async () => {
    letEnd();
    removeListeners();
    await Promise.all([http?.close(), isolates?.close()]);
    await telemetry?.close?.();
    recorder?.close();
  });
  const stop = async (stopOptions?: { readonly force?: boolean }) => {
    await runner.stop(stopOptions);
    await closed;
  };
  const text = () => metrics?.registry.text() ?? "";
  try {
    await defineAll(workflows, options.on);
    await isolates?.start();
    http = await startHttp(options.http, { metrics: text, workers: () => runner.workers() });
    await runner.start();
  } catch (error) {
    await stop({ force: true });
    throw error;
  }
  const handle: WorkHandle = {
    stop,
    closed,
    status: () => runner.status(),
    workers: () => runner.workers(),
    isHealthy: () => allAlive(runner.workers()),
    metrics: text,
    httpUrl: http?.url,
    on: (name, listener) => runner.events.on(name, listener),
    [Symbol.asyncDispose]: () => stop(),
  };
  return { handle, runner, metrics };
}

function tellCrash(crash: WorkerEvents["isolateCrashed"], runner: Runner, { logger }: RunnerConfig): void {
  const { isolate, tasks, error } = crash;
  const meant = tasks.length === 0 ? "no task ran in it" : `it was running ${tasks.join(", ")}, which may be tried again`;
  logger({ level: "warn", message: `A ${isolate} of handlers is replaced (${meant}). ${error.message}` });
  runner.events.emit("isolateCrashed", crash);
}

function measured(runner: Runner): WorkerMetrics {
  const active = () => [...runner.inFlight()].map(([task, value]) => ({ labels: [task], value }));
  const metrics = workerMetrics(active);
  measure(runner.events, metrics);
  return metrics;
}

/** The tasks by which a worker takes the turns of durable functions. Imports the module only when it is needed. */
async function functionTasks(workflows: readonly FunctionWorkflow[], transports: readonly Transport[]): Promise<Task[]> {
  if (workflows.length === 0) return [];
  const unable = transports.find(({ capabilities }) => !capabilities.functions);
  if (unable !== undefined) {
    const message = `${unable.name} cannot run durable functions (${workflows.map(({ name }) => name).join(", ")}): only a Longshore server can. Its tasks work there; leave out \`workflows\`, or add a transport to a Longshore server.`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "workflows" } });
  }
  const { driverTasks } = await import("./runner/function/driver.ts");
  return driverTasks(workflows.map(({ code }) => code));
}

/** Servers in this process get the workflows of the worker. Over a protocol a worker may define nothing. */
async function defineAll(workflows: readonly Workflow[], on: WorkOptions["on"]): Promise<void> {
  for (const target of targetsOf(on)) for (const workflow of workflows) if ("define" in target) await target.define?.(workflow);
}

/** Imports the module only when it is needed. */
async function openRecording(path: string | undefined, runner: Runner): Promise<Recorder | undefined> {
  if (path === undefined) return undefined;
  const { record } = await import("./runner/record.ts");
  return record(runner.events, path);
}

/** Imports the module only when a task needs isolation. */
async function makeIsolates(config: RunnerConfig, news: Pick<IsolatesOptions, "crashed" | "restarted">): Promise<Isolates | undefined> {
  const { isolated: tasks, isolateMemoryMb: memoryMbMax, clock, abortGraceMs } = config;
  if (tasks.size === 0) return undefined;
  const { Isolates } = await import("./runner/isolate/isolates.ts");
  return new Isolates({ tasks, memoryMbMax, clock, abortGraceMs, ...news });
}

/** Imports the module only when it is needed: a worker that serves nothing needs no HTTP server. */
async function startHttp(options: HttpOptions | undefined, pages: Pages): Promise<HttpHandle | undefined> {
  if (options === undefined) return undefined;
  const { serveWorker } = await import("./runner/http.ts");
  return serveWorker(options, pages);
}

function transportsOf(on: WorkOptions["on"]): readonly Transport[] {
  const targets = targetsOf(on);
  if (targets.length === 0) {
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", "on is an empty list, expected at least one transport.", { detail: { field: "on" } });
  }
  return targets.map((target) => ("transport" in target ? target.transport() : target));
}

function targetsOf(on: WorkOptions["on"]): readonly WorkTarget[] {
  return Array.isArray(on) ? (on as readonly WorkTarget[]) : [on as WorkTarget];
}

function listenForSignals(signals: boolean | SignalSource, runner: Runner, { logger, clock }: RunnerConfig): () => void {
  if (signals === false) return () => {};
  return onTermination(
    signals === true ? process : signals,
    (signal) => {
      const running = runner.status().running.length;
      const waiting = running === 0 ? "." : `; waiting for ${counted(running, "running task")}. Send it again to abort what runs.`;
      logger({ level: "info", message: `${signal}: stopping${waiting}` });
      void runner.stop();
    },
    () => void runner.stop({ force: true }),
    () => clock.now(),
  );
}
