// `TaskHandler`: the workers of a program, found, started, watched and stopped together.

import { join } from "node:path";
import { importForTasks, refuseWhileLoading } from "../../../../core/load.ts";
import type { Listeners } from "../../../../runner/events.ts";
import { type Client, type ConductorClient, connectionOf } from "./client.ts";
import { listenersOf, type TaskRunnerEventsListener } from "./events.ts";
import { type ConductorLogger, DefaultLogger, loggerOf } from "./logger.ts";
import { CanonicalMetricsCollector } from "./metrics.ts";
import { findModule } from "./modules.ts";
import { getRegisteredWorkers, moduleOf } from "./registry.ts";
import { allWell, freshWorkerId, type Placed, startWorkers, statusOf, type WorkerGroup } from "./running-workers.ts";
import { isAsync } from "./task-adapter.ts";
import type { ConductorWorker, RegisteredWorker, Task } from "./types.ts";

/** Whether, and how often, the process of a worker is started again after it has ended. */
export interface HealthMonitorConfig {
  /** Whether a worker's process that ended is started again; true by default. */
  enabled?: boolean;
  /** 5000 by default. */
  healthCheckIntervalMs?: number;
  /** 0, the default, is without limit. */
  maxRestartAttempts?: number;
}

/** The options of a `TaskHandler`. */
export interface TaskHandlerConfig {
  client: Client;
  /** Workers without a decorator. */
  workers?: ConductorWorker[];
  /** Whether decorated workers take part; true by default. */
  scanForDecorated?: boolean;
  /** Modules to load for the workers that they declare. Each of these workers runs in a separate process. */
  importModules?: string[];
  eventListeners?: TaskRunnerEventsListener[];
  logger?: ConductorLogger;
  healthMonitor?: HealthMonitorConfig;
  /** Ours: `"inline"` runs the workers of loaded modules in this process too; `"process"` by default. */
  isolate?: "process" | "inline";
  /** Ours: the folder for results that the server did not accept; `.longshore/outbox` by default, false to keep none. */
  outbox?: string | false;
}

/** The state of one worker of a `TaskHandler`. */
export interface WorkerHealth {
  taskDefName: string;
  domain?: string;
  polling: boolean;
  paused: boolean;
  workerId: string;
  restartCount: number;
}

/** Runs decorated and listed workers against a Conductor server. */
export class TaskHandler implements AsyncDisposable {
  readonly #config: TaskHandlerConfig;
  readonly #logger: ConductorLogger;
  readonly #paused = new Set<string>();
  #placed: readonly Placed[] = [];
  #groups: readonly WorkerGroup[] = [];
  #loaded = false;
  #starting: Promise<void> | undefined;

  /** Loads `importModules` first, so that `workerCount` includes their workers. `new TaskHandler` loads them when it starts. */
  static async create(config: TaskHandlerConfig): Promise<TaskHandler> {
    const handler = new TaskHandler(config);
    await handler.#load();
    return handler;
  }

  constructor(config: TaskHandlerConfig) {
    this.#config = config;
    this.#logger = config.logger ?? (config.client as Partial<ConductorClient>).config?.logger ?? new DefaultLogger();
    if (config.importModules === undefined || config.importModules.length === 0) this.#find();
  }

  /** Resolves when every worker polls. Calling it again changes nothing. */
  startWorkers(): Promise<void> {
    refuseWhileLoading();
    this.#starting ??= this.#start().catch((error) => {
      this.#starting = undefined;
      throw error;
    });
    return this.#starting;
  }

  /** Lets running tasks end and reports them, then resolves. Workers may be started again. */
  async stopWorkers(): Promise<void> {
    // A failed start has already stopped what it had started.
    await this.#starting?.catch(() => {});
    const groups = this.#groups;
    this.#groups = [];
    this.#starting = undefined;
    await Promise.all(groups.map((group) => group.stop()));
  }

  /** False when a worker's process has ended or its event loop is blocked. */
  isHealthy(): boolean {
    return this.running && allWell(this.#groups);
  }

  getWorkerStatus(): WorkerHealth[] {
    return this.#placed.map((each) => {
      const status = statusOf(this.#groups, each);
      const { taskDefName, domain } = each.worker;
      return {
        taskDefName,
        ...(domain === undefined ? {} : { domain }),
        polling: status?.alive ?? false,
        paused: this.#paused.has(taskDefName),
        workerId: each.workerId,
        restartCount: status?.restarts ?? 0,
      };
    });
  }

  get workerCount(): number {
    return this.#placed.length;
  }

  get runningWorkerCount(): number {
    return this.getWorkerStatus().filter(({ polling }) => polling).length;
  }

  get running(): boolean {
    return this.#groups.length > 0;
  }

  printSummary(): void {
    this.#logger.info(`${this.#placed.length} workers:`);
    for (const { worker, module } of this.#placed) {
      const { taskDefName, domain, concurrency = 1, pollInterval = 100 } = worker;
      const where = module === undefined ? "in this process" : "in a process of its own";
      this.#logger.info(
        `  ${taskDefName} (domain ${domain ?? "none"}, concurrency ${concurrency}, poll interval ${pollInterval} ms, ${where})`,
      );
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stopWorkers();
  }

  async #load(): Promise<void> {
    if (this.#loaded) return;
    this.#loaded = true;
    for (const name of this.#config.importModules ?? []) await importForTasks(findModule(name));
    this.#find();
  }

  #find(): void {
    const { scanForDecorated = true, workers = [], isolate = "process" } = this.#config;
    const decorated = scanForDecorated ? getRegisteredWorkers() : [];
    const all = [...decorated, ...workers.map(explicit)];
    const byKey = new Map(all.map((worker) => [`${worker.taskDefName}:${worker.domain ?? ""}`, worker]));
    if (byKey.size < all.length) this.#logger.info("Two workers have the same name and domain; the last one counts.");
    this.#placed = [...byKey.values()].map((worker) => ({
      worker,
      module: isolate === "process" ? moduleOf(worker) : undefined,
      workerId: worker.workerId ?? freshWorkerId(),
    }));
  }

  async #start(): Promise<void> {
    await this.#load();
    // Decorators may have run since this object was created.
    if (this.#config.importModules === undefined) this.#find();
    if (this.#placed.length === 0)
      this.#logger.info("There are no workers: decorate one, or name a module with decorated workers in importModules.");
    const { client, eventListeners = [], healthMonitor = {}, outbox = join(".longshore", "outbox") } = this.#config;
    const { enabled = true, healthCheckIntervalMs, maxRestartAttempts } = healthMonitor;
    const own: Listeners = {
      paused: ({ task }) => this.#paused.add(task),
      resumed: ({ task }) => this.#paused.delete(task),
    };
    this.#groups = await startWorkers(this.#placed, {
      connection: connectionOf(client),
      outbox,
      listeners: [own, ...eventListeners.map((each) => (each instanceof CanonicalMetricsCollector ? each.listeners() : listenersOf(each)))],
      logger: loggerOf(this.#logger),
      restarts: {
        monitor: enabled,
        ...(healthCheckIntervalMs === undefined ? {} : { interval: healthCheckIntervalMs }),
        ...(maxRestartAttempts === undefined ? {} : { maxAttempts: maxRestartAttempts }),
      },
    });
  }
}

function explicit(worker: ConductorWorker): RegisteredWorker {
  const { execute, ...rest } = worker;
  const call = (task: Task) => worker.execute(task);
  return { ...rest, executeFunction: isAsync(execute) ? async (task) => call(task) : call };
}
