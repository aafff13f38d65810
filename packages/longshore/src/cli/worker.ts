// A worker that connects to a server by its URL: for `longshore work`, its processes and the children of `dev` and `demo`.

import type { Task } from "../core/task.ts";
import { openWork } from "../open-work.ts";
import type { WorkerSettings } from "../protocols/worker-half.ts";
import type { HttpOptions } from "../runner/http.ts";
import type { WorkerMetrics } from "../runner/instruments.ts";
import type { Logger } from "../runner/notices.ts";
import type { Runner } from "../runner/runner.ts";
import type { WorkHandle } from "../work.ts";
import type { FunctionWorkflow } from "../workflow.ts";
import { workerProtocol } from "./protocols.ts";
import { type WorkerOutput, workerOutput } from "./telemetry.ts";

export interface WorkerSurroundings {
  /** Receives notices when there is no telemetry. */
  readonly logger?: Logger;
  /** Default: the default of the protocol. */
  readonly output?: WorkerOutput;
  /** Prints to standard output when that is reserved for another program. */
  readonly print?: (text: string) => void;
  readonly metrics?: boolean;
  /** False when the caller handles SIGINT and SIGTERM. */
  readonly signals?: false;
  /** Durable functions, whose turns the worker takes in its own process. */
  readonly functions?: readonly FunctionWorkflow[];
  readonly http?: HttpOptions;
}

/** Starts a worker, and returns the parts that a supervisor needs. */
export async function openWorker(
  tasks: readonly Task[],
  settings: WorkerSettings,
  { logger, metrics, http, functions, output, signals, print = (text) => void process.stdout.write(text) }: WorkerSurroundings = {},
): Promise<{ handle: WorkHandle; runner: Runner; metrics: WorkerMetrics | undefined }> {
  const { protocol, slots, drain, isolate, record } = settings;
  const names = tasks.map((task) => task.name);
  const { telemetry } = output ?? (await workerOutput(protocol, settings.workerId));
  const on = await workerProtocol(protocol).transport(settings, names, print);
  return openWork({
    tasks,
    workflows: functions,
    on,
    slots,
    drain,
    isolate,
    logger: telemetry?.logger ?? logger,
    telemetry,
    metrics,
    http,
    record,
    signals,
  });
}

/** Starts a worker, and reports when the server accepts it. */
export async function startWorker(
  tasks: readonly Task[],
  settings: WorkerSettings,
  surroundings: WorkerSurroundings = {},
): Promise<WorkHandle> {
  const output = surroundings.output ?? (await workerOutput(settings.protocol, settings.workerId));
  const { handle } = await openWorker(tasks, settings, { ...surroundings, output });
  // Only now: a server that cannot be reached or refuses this worker is reported as a failure.
  const { functions = [] } = surroundings;
  handle.on("connected", () => sayWorking(settings, [...functions, ...tasks], output.log));
  return handle;
}

export function sayWorking({ on, shell }: WorkerSettings, tasks: readonly Pick<Task, "name">[], log: Logger): void {
  const able = [...tasks.map((task) => task.name), ...(shell ? ["shell commands"] : [])];
  log({ level: "info", message: `working for ${on}: ${able.join(", ")}` });
}
