// `conductorTask()`: values that only Conductor has, for a handler to read and set. `ctx` itself is the same on every protocol.

import { type Context, currentContext } from "../../../core/context.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import type { PolledTask, TaskExecLog } from "../wire/shapes.ts";
import { type Amendments, seconds } from "./result.ts";

/** What Conductor knows about the running task, from `conductorTask()`. */
export interface ConductorTask {
  readonly taskId: string;
  readonly workflowInstanceId: string;
  readonly taskDefName: string;
  readonly referenceTaskName: string;
  /** 1 on the first call; rises with every call after an IN_PROGRESS result. */
  readonly pollCount: number;
  readonly retryCount: number;
  readonly inputData: JsonObject;
  /** The task as the server sent it. */
  readonly task: PolledTask;
  addLog(text: string): void;
  /** With an IN_PROGRESS result: when to be called again. Takes precedence over the result's own time. */
  setCallbackAfter(callbackAfterSeconds: number): void;
  /** Merged with the result's output. When both have the same key, the value of the result is used. The last call counts. */
  setOutput(output: { readonly [name: string]: unknown }): void;
}

/** The task of the handler that called this function, directly or indirectly. Throws LONGSHORE_CLOSED outside a Conductor task. */
export function conductorTask(context: Context = currentContext()): ConductorTask {
  const task = context.native;
  if (!isObject(task) || typeof task.workflowInstanceId !== "string") {
    throw new LongshoreError("LONGSHORE_CLOSED", "conductorTask() was called for a task that did not come from a Conductor server.");
  }
  const polled = task as unknown as PolledTask;
  const { taskId, workflowInstanceId, taskDefName, referenceTaskName, pollCount, retryCount, inputData } = polled;
  return {
    taskId,
    workflowInstanceId,
    taskDefName,
    referenceTaskName,
    pollCount,
    retryCount,
    inputData,
    task: polled,
    addLog: (text) => context.log(text),
    setCallbackAfter: (after) => context.amend("callbackAfterSeconds", seconds(after)),
    setOutput: (output) => context.amend("outputData", output as Json),
  };
}

/** Stores a value from `ctx.amend`. Unknown names are ignored. */
export function amend(amendments: Amendments, name: string, value: Json): void {
  if (name === "callbackAfterSeconds" && typeof value === "number") amendments.callbackAfterSeconds = value;
  if (name === "resultCallbackAfterSeconds" && typeof value === "number") amendments.resultCallbackAfterSeconds = value;
  if (name === "outputData" && isObject(value)) amendments.outputData = value as JsonObject;
  if (name === "resultFields" && isObject(value)) amendments.resultFields = value;
  if (name === "resultLogs" && Array.isArray(value)) amendments.resultLogs = value as unknown as readonly TaskExecLog[];
}
