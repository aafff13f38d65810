// A worker on a server that is reached by its URL, as `longshore work`, its processes and the children of `dev` and `demo` run it.

import type { Duration } from "../duration.ts";
import type { HttpOptions } from "../runner/http.ts";
import type { WorkerMetrics } from "../runner/instruments.ts";
import type { Logger } from "../runner/notices.ts";
import type { Runner } from "../runner/runner.ts";
import type { Isolate, Task } from "../task.ts";
import { openWork, type WorkHandle } from "../work.ts";
import { type ProtocolName, workerProtocols } from "./protocols.ts";

/** Data, so that it can be handed to another process. */
export interface WorkerSettings {
  /** workflow-graph unless told. */
  readonly protocol?: ProtocolName;
  readonly on: string;
  readonly token?: string;
  readonly shell?: boolean;
  readonly labels?: readonly string[];
  readonly slots?: number;
  readonly workerId?: string;
  readonly leaseTtl?: Duration;
  readonly heartbeat?: Duration;
  readonly poll?: Duration;
  readonly cancelPoll?: Duration;
  readonly logFlush?: Duration;
  readonly drain?: Duration;
  readonly cwd?: string;
  readonly isolate?: Isolate;
}

export interface WorkerSurroundings {
  readonly logger?: Logger;
  readonly metrics?: boolean;
  readonly http?: HttpOptions;
}

/** Starts it, with the parts that a supervisor needs. */
export async function openWorker(
  tasks: readonly Task[],
  settings: WorkerSettings,
  { logger, metrics, http }: WorkerSurroundings = {},
): Promise<{ handle: WorkHandle; runner: Runner; metrics: WorkerMetrics | undefined }> {
  const { protocol = "workflow-graph", slots, drain, isolate } = settings;
  const names = tasks.map((task) => task.name);
  const on = await workerProtocols[protocol].transport(settings, names);
  return openWork({ tasks, on, slots, drain, isolate, logger, metrics, http });
}

/** Starts it, and says so when the server lets it in. */
export async function startWorker(
  tasks: readonly Task[],
  settings: WorkerSettings,
  surroundings: WorkerSurroundings = {},
): Promise<WorkHandle> {
  const { handle } = await openWorker(tasks, settings, surroundings);
  // Not before: a server that is not there or does not let this worker in is told as a failure.
  handle.on("connected", () => sayWorking(settings, tasks));
  return handle;
}

export function sayWorking({ on, shell }: WorkerSettings, tasks: readonly Task[]): void {
  const able = [...tasks.map((task) => task.name), ...(shell ? ["shell commands"] : [])];
  process.stderr.write(`longshore info: working for ${on}: ${able.join(", ")}\n`);
}
