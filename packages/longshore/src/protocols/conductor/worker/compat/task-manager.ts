// `TaskManager`: the SDK's older way to run a list of workers. All of them run in this process.

import { LongshoreError, toError } from "../../../../core/errors.ts";
import type { Client } from "./client.ts";
import type { TaskRunnerEventsListener } from "./events.ts";
import type { ConductorLogger } from "./logger.ts";
import { TaskHandler } from "./task-handler.ts";
import type { ConductorWorker, Task } from "./types.ts";

/** Settings for all workers of a `TaskManager`. */
export interface TaskManagerOptions {
  workerID?: string;
  domain?: string | undefined;
  /** Milliseconds; 100 by default. */
  pollInterval?: number;
  concurrency?: number;
  /** Milliseconds that a poll waits at the server. */
  batchPollingTimeout?: number;
}

/** The options of a `TaskManager`. */
export interface TaskManagerConfig {
  logger?: ConductorLogger;
  /** For every worker without its own setting. */
  options?: TaskManagerOptions;
  /** Called with errors outside of handlers, and with what handlers threw. What it throws itself changes nothing. */
  onError?: (error: Error, task?: Task) => void;
  eventListeners?: TaskRunnerEventsListener[];
}

/** Runs a list of workers against a Conductor server; the older API of the SDK. */
export class TaskManager {
  readonly options: Readonly<TaskManagerOptions>;
  readonly #workers: readonly ConductorWorker[];
  readonly #handler: TaskHandler;
  readonly #onError: (error: Error) => void;
  #polling = false;

  constructor(client: Client, workers: ConductorWorker[], config: TaskManagerConfig = {}) {
    this.options = config.options ?? {};
    this.#workers = workers;
    const onError = config.onError;
    this.#onError = (error) => {
      try {
        onError?.(error);
      } catch {
        // An error of the callback must not affect the worker.
      }
    };
    const { logger, eventListeners = [] } = config;
    this.#handler = new TaskHandler({
      client,
      workers: workers.map((worker) => this.#withOptions(worker)),
      scanForDecorated: false,
      eventListeners: onError === undefined ? eventListeners : [...eventListeners, errorListener(onError)],
      ...(logger === undefined ? {} : { logger }),
    });
  }

  get isPolling(): boolean {
    return this.#polling;
  }

  /** Throws LONGSHORE_BAD_CONFIG for no workers, and for two of one name and domain. */
  sanityCheck = (): void => {
    if (this.#workers.length === 0) throw badWorkers("There are no workers, expected at least one.");
    const seen = new Set<string>();
    for (const { taskDefName, domain } of this.#workers) {
      const key = `${taskDefName}:${domain ?? ""}`;
      if (seen.has(key)) throw badWorkers(`Two workers are for ${taskDefName}, expected one for each name and domain.`);
      seen.add(key);
    }
  };

  /** Begins at once; a failure of the start is passed to `onError`. */
  startPolling = (): void => {
    this.sanityCheck();
    if (this.#polling) return;
    this.#polling = true;
    this.#handler.startWorkers().catch((error) => {
      this.#polling = false;
      this.#onError(toError(error));
    });
  };

  /** Resolves when running tasks have ended and are reported. */
  stopPolling = async (): Promise<void> => {
    await this.#handler.stopWorkers();
    this.#polling = false;
  };

  #withOptions(worker: ConductorWorker): ConductorWorker {
    const { workerID, domain, pollInterval, concurrency, batchPollingTimeout } = this.options;
    const options = { workerId: workerID, domain, pollInterval, concurrency, pollTimeout: batchPollingTimeout };
    return { ...Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)), ...worker };
  }
}

function errorListener(onError: (error: Error, task?: Task) => void): TaskRunnerEventsListener {
  return {
    onPollFailure: ({ cause }) => onError(cause),
    onTaskExecutionFailure: ({ cause, taskId, workflowInstanceId, taskType }) =>
      onError(cause, { taskId, taskDefName: taskType, ...(workflowInstanceId === undefined ? {} : { workflowInstanceId }) }),
    onTaskUpdateFailure: ({ cause, taskId, workflowInstanceId, taskType }) =>
      onError(cause, { taskId, taskDefName: taskType, ...(workflowInstanceId === undefined ? {} : { workflowInstanceId }) }),
  };
}

function badWorkers(message: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "workers" } });
}
