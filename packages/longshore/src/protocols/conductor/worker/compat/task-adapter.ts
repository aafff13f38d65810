// Turns a worker of the SDK into a task: the handler receives the task as the server sent it and returns a wire result, or any value.

import type { Context } from "../../../../core/context.ts";
import { isObject } from "../../../../core/json/json.ts";
import { type Task, task } from "../../../../core/task.ts";
import { resultStatuses } from "../../wire/shapes.ts";
import { type ResultObject, taskResult } from "../result.ts";
import { conductorTask } from "../task-context.ts";
import { asThrown } from "./non-retryable.ts";
import { TaskContext, withTaskContext } from "./task-context.ts";
import type { RegisteredWorker, WorkerMethod } from "./types.ts";

/** `module` is the file that declares the worker, if it can be loaded again. */
export function taskOf(worker: RegisteredWorker, module?: string): Task {
  const { taskDefName, executeFunction: execute, concurrency = 1, inputSchema, outputSchema } = worker;
  const schemas = { ...(inputSchema && { input: inputSchema }), ...(outputSchema && { output: outputSchema }) };
  return task(taskDefName, handlerOf(execute), { concurrency, schemas, ...(module === undefined ? {} : { module }) });
}

/** Synchronous when the worker's own function is synchronous, because this decides where the task may run. */
function handlerOf(execute: WorkerMethod): (input: unknown, context: Context) => unknown {
  if (isAsync(execute)) {
    return async (_input, context) => {
      try {
        return ending(await called(execute, context), context);
      } catch (error) {
        throw asThrown(error);
      }
    };
  }
  return (_input, context) => {
    try {
      const value = called(execute, context);
      if (!(value instanceof Promise)) return ending(value, context);
      return value.then(
        (settled) => ending(settled, context),
        (error) => Promise.reject(asThrown(error)),
      );
    } catch (error) {
      throw asThrown(error);
    }
  };
}

export function isAsync(execute: WorkerMethod): boolean {
  return Object.prototype.toString.call(execute) === "[object AsyncFunction]";
}

function called(execute: WorkerMethod, context: Context): unknown {
  const { task: polled } = conductorTask(context);
  return withTaskContext(new TaskContext(polled, context), () => execute(polled));
}

/** An object with one of the four statuses is a wire result; everything else is the output itself. */
function ending(value: unknown, context: Context): unknown {
  if (!isObject(value) || !(resultStatuses as readonly unknown[]).includes(value.status)) return value;
  return taskResult(value as unknown as ResultObject, context);
}
