// What `work()` does when it is called: puts a worker together and starts it.

import type { Clock } from "./core/clock.ts";
import { LongshoreError } from "./core/errors.ts";
import { keepProcessAlive } from "./core/process-keepalive.ts";
import type { Recorder } from "./core/recording.ts";
import { onTermination, type SignalSource } from "./core/signal.ts";
import type { Task } from "./core/task.ts";
import { counted } from "./core/text.ts";
import { workflowFamily } from "./core/workflow-family.ts";
import { type RunnerConfig, runnerConfig } from "./runner/config.ts";
import type { WorkerEvents } from "./runner/events.ts";
import type { ValueLimit } from "./runner/function/value-limit.ts";
import { allAlive } from "./runner/health.ts";
import type { HttpHandle, HttpOptions, Pages } from "./runner/http.ts";
import { measure, type WorkerMetrics, workerMetrics } from "./runner/instruments.ts";
import type { Isolates, IsolatesOptions } from "./runner/isolate/isolates.ts";
import { Runner } from "./runner/runner.ts";
import type { Transport } from "./runner/transport.ts";
import type { WorkHandle, WorkOptions, WorkTarget } from "./work.ts";
import { type FunctionWorkflow, isFunctionWorkflow } from "./workflow.ts";
import type { Workflow } from "./workflow-value.ts";

/** The same for a process that works for another process. Also returns the parts that the handle hides. */
export async function openWork(options: WorkOptions): Promise<{ handle: WorkHandle; runner: Runner; metrics: WorkerMetrics | undefined }> {
  const { telemetry } = options;
  const { logger = telemetry?.logger, tracer = telemetry?.tracer } = options;
  const transports = transportsOf(options.on);
  const workflows = workflowFamily<Workflow>(options.workflows ?? []);
  const tasks = [...(options.tasks ?? []), ...(await functionTasks(workflows.filter(isFunctionWorkflow), transports, options.clock))];
  const config = runnerConfig({ ...options, tasks, logger, tracer });
  const isolates = await makeIsolates(config, {
    crashed: (crash) => reportCrash(crash, runner, config),
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

function reportCrash(crash: WorkerEvents["isolateCrashed"], runner: Runner, { logger }: RunnerConfig): void {
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

/** The tasks through which a worker receives the turns of durable functions. Imports the module only when it is needed. */
async function functionTasks(
  workflows: readonly FunctionWorkflow[],
  transports: readonly Transport[],
  clock: Clock | undefined,
): Promise<Task[]> {
  if (workflows.length === 0) return [];
  const unable = transports.find(({ capabilities }) => !capabilities.functions);
  if (unable !== undefined) {
    const message = `${unable.name} cannot run durable functions (${workflows.map(({ name }) => name).join(", ")}): only a Longshore server can. Its tasks work there; leave out \`workflows\`, or add a transport to a Longshore server.`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "workflows" } });
  }
  const { driverTasks } = await import("./runner/function/driver.ts");
  return driverTasks(
    workflows.map(({ code }) => code),
    { limit: smallest(transports), steady: clock === undefined ? undefined : () => clock.now() },
  );
}

/** The limit for the values of commands that every transport takes; undefined without one. */
function smallest(transports: readonly Transport[]): ValueLimit | undefined {
  const limits = transports.flatMap(({ capabilities }) => capabilities.commandValue ?? []);
  if (limits.length === 0) return undefined;
  return { bytes: Math.min(...limits.map(({ bytes }) => bytes)), values: Math.min(...limits.map(({ values }) => values)) };
}

/** Servers in this process get the workflows of the worker. Over a protocol, a worker is not allowed to define workflows. */
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
