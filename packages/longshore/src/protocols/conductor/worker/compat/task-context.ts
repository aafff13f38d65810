// `getTaskContext()`: what a handler of the SDK can read and set besides its result.

import { AsyncLocalStorage } from "node:async_hooks";
import type { Context } from "../../../../core/context.ts";
import { conductorTask } from "../task-context.ts";
import type { Task, TaskExecLog } from "./types.ts";

/** What a worker function can read and do besides its input, from `getTaskContext()`. */
export class TaskContext {
  readonly #task: Task;
  /** Absent in a test that makes a context by hand. */
  readonly #context: Context | undefined;
  readonly #logs: TaskExecLog[] = [];
  #callbackAfterSeconds: number | undefined;
  #output: Record<string, unknown> | undefined;

  constructor(task: Task, context?: Context) {
    this.#task = task;
    this.#context = context;
  }

  getTaskId(): string | undefined {
    return this.#task.taskId;
  }

  getWorkflowInstanceId(): string | undefined {
    return this.#task.workflowInstanceId;
  }

  /** 0 on the first attempt. */
  getRetryCount(): number {
    return this.#task.retryCount ?? 0;
  }

  /** 1 on the first call of an attempt; rises with every call after an in-progress result. */
  getPollCount(): number {
    return this.#task.pollCount ?? 0;
  }

  getInput(): Record<string, unknown> {
    return this.#task.inputData ?? {};
  }

  getTaskDefName(): string | undefined {
    return this.#task.taskDefName;
  }

  getWorkflowTaskType(): string | undefined {
    return this.#task.workflowTask?.type;
  }

  getTask(): Task {
    return this.#task;
  }

  /** Sent with the result, also when the handler fails. */
  addLog(message: string): void {
    this.#logs.push({ log: message, createdTime: Date.now(), ...(this.#task.taskId === undefined ? {} : { taskId: this.#task.taskId }) });
    this.#context?.log(message);
  }

  getLogs(): TaskExecLog[] {
    return [...this.#logs];
  }

  /** Takes precedence over the `callbackAfterSeconds` of the result. */
  setCallbackAfter(seconds: number): void {
    if (this.#context !== undefined) conductorTask(this.#context).setCallbackAfter(seconds);
    this.#callbackAfterSeconds = seconds;
  }

  getCallbackAfterSeconds(): number | undefined {
    return this.#callbackAfterSeconds;
  }

  /** Merged with the output of the result. When both have the same key, the value of the result is used. */
  setOutput(data: Record<string, unknown>): void {
    if (this.#context !== undefined) conductorTask(this.#context).setOutput(data);
    this.#output = data;
  }

  getOutput(): Record<string, unknown> | undefined {
    return this.#output;
  }

  /** Ours: aborts when the task was cancelled, has timed out, or this worker stops. */
  get signal(): AbortSignal | undefined {
    return this.#context?.signal;
  }
}

// This class has no state: each handler's context belongs to the asynchronous call chain that the handler started.
const running = new AsyncLocalStorage<TaskContext>();

/** Undefined outside a handler. */
export function getTaskContext(): TaskContext | undefined {
  return running.getStore();
}

export function withTaskContext<Result>(context: TaskContext, fn: () => Result): Result {
  return running.run(context, fn);
}
