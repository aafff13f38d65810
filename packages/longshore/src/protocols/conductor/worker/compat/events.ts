// The SDK's events and listeners, and the conversion of the runner's events to them.

import { toError } from "../../../../core/errors.ts";
import type { Listeners } from "../../../../runner/events.ts";
import type { Outcome } from "../../../../runner/transport.ts";
import type { PolledTask } from "../../wire/shapes.ts";
import { resultOf } from "../result.ts";
import type { ConductorLogger } from "./logger.ts";

/** The fields of every event. */
export interface TaskRunnerEvent {
  taskType: string;
  timestamp: Date;
}

/** A worker starts to poll. */
export interface PollStarted extends TaskRunnerEvent {
  workerId: string;
  /** How many tasks were requested. */
  pollCount: number;
}

/** The server has answered a poll, with or without tasks. */
export interface PollCompleted extends TaskRunnerEvent {
  durationMs: number;
  tasksReceived: number;
}

/** A poll has failed. */
export interface PollFailure extends TaskRunnerEvent {
  durationMs: number;
  cause: Error;
}

interface ExecutionEvent extends TaskRunnerEvent {
  taskId: string;
  workerId: string;
  workflowInstanceId?: string;
}

/** A worker function is about to be called. */
export interface TaskExecutionStarted extends ExecutionEvent {}

/** A worker function has returned. */
export interface TaskExecutionCompleted extends ExecutionEvent {
  durationMs: number;
  outputSizeBytes?: number;
}

/** A worker function has thrown, was stopped, or could not be called (then without a TaskExecutionStarted). */
export interface TaskExecutionFailure extends ExecutionEvent {
  cause: Error;
  durationMs: number;
}

/** The server has accepted the result of a task. */
export interface TaskUpdateCompleted extends ExecutionEvent {
  durationMs: number;
}

/** The result of a task could not be delivered, and no further try follows. */
export interface TaskUpdateFailure extends ExecutionEvent {
  cause: Error;
  durationMs?: number;
  retryCount: number;
  /** The result that could not be reported. A program may store it. */
  taskResult: unknown;
}

/** A worker is paused and does not poll. */
export interface TaskPaused extends TaskRunnerEvent {}

/** Any event of a worker. */
export type TaskRunnerEventType =
  | PollStarted
  | PollCompleted
  | PollFailure
  | TaskExecutionStarted
  | TaskExecutionCompleted
  | TaskExecutionFailure
  | TaskUpdateCompleted
  | TaskUpdateFailure
  | TaskPaused;

/** All methods are optional. No method can delay or stop a worker. */
export interface TaskRunnerEventsListener {
  onPollStarted?(event: PollStarted): void | Promise<void>;
  onPollCompleted?(event: PollCompleted): void | Promise<void>;
  onPollFailure?(event: PollFailure): void | Promise<void>;
  onTaskExecutionStarted?(event: TaskExecutionStarted): void | Promise<void>;
  onTaskExecutionCompleted?(event: TaskExecutionCompleted): void | Promise<void>;
  onTaskExecutionFailure?(event: TaskExecutionFailure): void | Promise<void>;
  onTaskUpdateCompleted?(event: TaskUpdateCompleted): void | Promise<void>;
  onTaskUpdateFailure?(event: TaskUpdateFailure): void | Promise<void>;
  onTaskPaused?(event: TaskPaused): void | Promise<void>;
}

/** The events for which this listener has methods; others are not requested. */
export function listenersOf(listener: TaskRunnerEventsListener): Listeners {
  const base = (event: { readonly task: string; readonly atMs: number }) => ({ taskType: event.task, timestamp: new Date(event.atMs) });
  const execution = (event: TaskOf) => ({
    ...base(event),
    taskId: event.ids.taskId,
    workerId: event.worker ?? "",
    workflowInstanceId: event.ids.runId,
  });
  const all: Required<Pick<Listeners, EventName>> = {
    pollStarted: (event) => listener.onPollStarted?.({ ...base(event), workerId: event.worker ?? "", pollCount: event.count }),
    pollCompleted: (event) => listener.onPollCompleted?.({ ...base(event), durationMs: event.durationMs, tasksReceived: event.received }),
    pollFailed: (event) => listener.onPollFailure?.({ ...base(event), durationMs: event.durationMs, cause: event.error }),
    executionStarted: (event) => listener.onTaskExecutionStarted?.(execution(event)),
    executionCompleted: (event) =>
      listener.onTaskExecutionCompleted?.({ ...execution(event), durationMs: event.durationMs, outputSizeBytes: event.outputBytes }),
    executionFailed: (event) =>
      listener.onTaskExecutionFailure?.({ ...execution(event), durationMs: event.durationMs, cause: causeOf(event.error) }),
    updateCompleted: (event) => listener.onTaskUpdateCompleted?.({ ...execution(event), durationMs: event.durationMs }),
    updateFailed: (event) =>
      listener.onTaskUpdateFailure?.({
        ...execution(event),
        cause: event.error,
        durationMs: event.durationMs,
        retryCount: event.tries,
        taskResult: wireResult(event, event.result),
      }),
    paused: (event) => listener.onTaskPaused?.(base(event)),
  };
  const wanted = (Object.keys(all) as EventName[]).filter((name) => listener[methodOf[name]] !== undefined);
  return Object.fromEntries(wanted.map((name) => [name, all[name]]));
}

interface TaskOf {
  readonly task: string;
  readonly worker: string | undefined;
  readonly atMs: number;
  readonly ids: { readonly taskId: string; readonly runId: string };
}

const methodOf = {
  pollStarted: "onPollStarted",
  pollCompleted: "onPollCompleted",
  pollFailed: "onPollFailure",
  executionStarted: "onTaskExecutionStarted",
  executionCompleted: "onTaskExecutionCompleted",
  executionFailed: "onTaskExecutionFailure",
  updateCompleted: "onTaskUpdateCompleted",
  updateFailed: "onTaskUpdateFailure",
  paused: "onTaskPaused",
} as const satisfies { [name in keyof Listeners]?: keyof TaskRunnerEventsListener };
type EventName = keyof typeof methodOf;

/** Makes an Error from the fields of the error that the handler threw. */
function causeOf({ message, name, stack }: { readonly message: string; readonly name: string; readonly stack: string | undefined }): Error {
  const error = new Error(message);
  error.name = name;
  if (stack !== undefined) error.stack = stack;
  return error;
}

function wireResult({ ids, worker, atMs }: TaskOf, outcome: Outcome): unknown {
  const task = { taskId: ids.taskId, workflowInstanceId: ids.runId, outputData: {} } as unknown as PolledTask;
  return resultOf(task, outcome, { workerId: worker ?? "", logs: [], amendments: {}, nowMs: atMs });
}

type Publish = { [Method in keyof Required<TaskRunnerEventsListener>]: Parameters<Required<TaskRunnerEventsListener>[Method]>[0] };

/** For programs that pass events on themselves. A TaskHandler does not need it. */
export class EventDispatcher {
  readonly #listeners = new Set<TaskRunnerEventsListener>();
  readonly #logger: ConductorLogger | undefined;

  constructor(logger?: ConductorLogger) {
    this.#logger = logger;
  }

  register(listener: TaskRunnerEventsListener): void {
    this.#listeners.add(listener);
  }

  unregister(listener: TaskRunnerEventsListener): void {
    this.#listeners.delete(listener);
  }

  publishPollStarted = (event: PollStarted) => this.#publish("onPollStarted", event);
  publishPollCompleted = (event: PollCompleted) => this.#publish("onPollCompleted", event);
  publishPollFailure = (event: PollFailure) => this.#publish("onPollFailure", event);
  publishTaskExecutionStarted = (event: TaskExecutionStarted) => this.#publish("onTaskExecutionStarted", event);
  publishTaskExecutionCompleted = (event: TaskExecutionCompleted) => this.#publish("onTaskExecutionCompleted", event);
  publishTaskExecutionFailure = (event: TaskExecutionFailure) => this.#publish("onTaskExecutionFailure", event);
  publishTaskUpdateCompleted = (event: TaskUpdateCompleted) => this.#publish("onTaskUpdateCompleted", event);
  publishTaskUpdateFailure = (event: TaskUpdateFailure) => this.#publish("onTaskUpdateFailure", event);
  publishTaskPaused = (event: TaskPaused) => this.#publish("onTaskPaused", event);

  async #publish<Method extends keyof Publish>(method: Method, event: Publish[Method]): Promise<void> {
    for (const listener of this.#listeners) {
      try {
        await (listener[method] as ((event: Publish[Method]) => unknown) | undefined)?.call(listener, event);
      } catch (error) {
        // An error in one listener must affect neither the worker nor the next listener.
        this.#logger?.error(`${method} threw: ${toError(error).message}`);
      }
    }
  }
}
