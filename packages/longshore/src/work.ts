// Starts a worker: `await work({ tasks, on })`. The returned handle stops it; until then the process stays alive.
//
// The runner is loaded by the first call: a module that only defines tasks and workflows loads none of it.

import { refuseWhileLoading } from "./core/load.ts";
import type { SignalSource } from "./core/signal.ts";
import type { RunnerOptions } from "./runner/config.ts";
import type { EventName, Listener, Listeners } from "./runner/events.ts";
import type { WorkerStatuses } from "./runner/health.ts";
import type { HttpOptions } from "./runner/http.ts";
import type { RunnerStatus } from "./runner/status.ts";
import type { Telemetry } from "./runner/telemetry.ts";
import type { Transport, TransportSource } from "./runner/transport.ts";
import type { FunctionWorkflow } from "./workflow.ts";
import type { Workflow } from "./workflow-value.ts";

/** A server in this process. */
export interface WorkSource extends TransportSource {
  /** Stores a workflow. `work()` calls it for its durable functions before it takes tasks: they may run each other by name. */
  define?(workflow: Workflow): Promise<unknown>;
}

/** The source of a worker's tasks: the transport of a protocol, or a server in this process. */
export type WorkTarget = Transport | WorkSource;

/** The options of `work()`. */
export interface WorkOptions extends RunnerOptions {
  /** The source of tasks: one transport, a server in this process, or several that share the slots. */
  readonly on: WorkTarget | readonly WorkTarget[];
  /** Durable functions that this worker runs, and those that they name in `uses`. A server in this process also defines them. */
  readonly workflows?: readonly FunctionWorkflow[];
  /** Whether SIGINT and SIGTERM drain this worker, and a second signal forces it to stop. Default: true. */
  readonly signals?: boolean | SignalSource;
  /** Listeners from the start; `worker.on` adds more later. */
  readonly listeners?: readonly Listeners[];
  /** Serves `/metrics` (Prometheus text) and `/health`, on loopback by default. */
  readonly http?: HttpOptions;
  /** Receives spans and log records, such as `telemetry()` of `longshore/telemetry`. */
  readonly telemetry?: Telemetry;
  /** Whether `metrics()` has values without the option `http`. With `http`, it always has. */
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
  const { openWork } = await import("./open-work.ts");
  return (await openWork(options)).handle;
}
