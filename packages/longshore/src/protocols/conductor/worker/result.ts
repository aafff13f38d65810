// Converts the outcome of a handler to its TaskResult, and defines the result objects that a handler may return. Pure functions.
//
// | outcome                      | status                     | outputData                    | besides                           |
// | a value                      | COMPLETED                  | an object, or {result: value} |                                   |
// | deferred                     | IN_PROGRESS                | what the deferral keeps       | callbackAfterSeconds              |
// | failed, may be retried       | FAILED                     | what there is                 | reasonForIncompletion, stack log  |
// | failed, final                | FAILED_WITH_TERMINAL_ERROR | what there is                 | reasonForIncompletion, stack log  |
// | stopped by a shutdown        | IN_PROGRESS                | as polled                     | callbackAfterSeconds 0            |
//
// After a shutdown the task returns to the queue at once, and no attempt is used up.
//
// The values that the handler set on its context are merged in. When the context and the result have the same key of the output, the result's value is used. The context's logs
// come after the result's logs. The context's callback time takes precedence over the result's callback time. After a shutdown, only the logs are added.

import { type Context, currentContext, type Deferral, type Ending } from "../../../core/context.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { toJson } from "../../../core/json/to-json.ts";
import { cutMiddle } from "../../../core/text.ts";
import type { LogEntry, Outcome } from "../../../runner/transport.ts";
import { type PolledTask, type ResultStatus, resultStatuses, type TaskExecLog, type TaskResult } from "../wire/shapes.ts";

/** The values that a handler has set in addition to its outcome. */
export interface Amendments {
  callbackAfterSeconds?: number;
  outputData?: JsonObject;
  /** From a result object that the handler returned. */
  resultCallbackAfterSeconds?: number;
  resultLogs?: readonly TaskExecLog[];
  resultFields?: Pick<TaskResult, "externalOutputPayloadStoragePath" | "subWorkflowId">;
}

/** Servers keep the reason in a column that some databases limit. */
const reasonCharsMax = 8_000;

export interface ResultFields {
  readonly workerId: string;
  readonly logs: readonly LogEntry[];
  readonly amendments: Amendments;
  readonly nowMs: number;
}

export function resultOf(task: PolledTask, outcome: Outcome, fields: ResultFields): TaskResult {
  const { amendments, workerId } = fields;
  const { taskId, workflowInstanceId } = task;
  const ids = { taskId, workflowInstanceId, workerId };
  const logs = logsOf(task, outcome, fields);
  if (isShutdown(outcome)) return { ...givenBack(task, workerId), ...(logs.length === 0 ? {} : { logs }) };
  const callbackAfterSeconds = callbackOf(outcome, amendments);
  const reason = outcome.kind === "failed" ? { reasonForIncompletion: cutMiddle(outcome.error.message, reasonCharsMax) } : {};
  return {
    ...ids,
    ...amendments.resultFields,
    status: statusOf(outcome),
    ...reason,
    ...(callbackAfterSeconds === undefined ? {} : { callbackAfterSeconds }),
    outputData: { ...amendments.outputData, ...outputOf(outcome) },
    ...(logs.length === 0 ? {} : { logs }),
  };
}

/** Returns the task to the queue at once, unchanged. */
export function givenBack(task: PolledTask, workerId: string): TaskResult {
  const { taskId, workflowInstanceId, outputData } = task;
  return { taskId, workflowInstanceId, workerId, status: "IN_PROGRESS", callbackAfterSeconds: 0, outputData };
}

export function isShutdown(outcome: Outcome): boolean {
  return outcome.kind === "failed" && outcome.error.code === "LONGSHORE_SHUTDOWN";
}

function statusOf(outcome: Outcome): ResultStatus {
  if (outcome.kind === "done") return "COMPLETED";
  if (outcome.kind === "deferred") return "IN_PROGRESS";
  return outcome.retryable ? "FAILED" : "FAILED_WITH_TERMINAL_ERROR";
}

function outputOf(outcome: Outcome): JsonObject {
  const { output } = outcome;
  if (isObject(output)) return output as JsonObject;
  return output === undefined ? {} : { result: output as Json };
}

function callbackOf(outcome: Outcome, amendments: Amendments): number | undefined {
  const own = outcome.kind === "deferred" ? Math.ceil(outcome.delayMs / 1_000) : amendments.resultCallbackAfterSeconds;
  return amendments.callbackAfterSeconds ?? own;
}

function logsOf({ taskId }: PolledTask, outcome: Outcome, { logs, amendments, nowMs }: ResultFields): TaskExecLog[] {
  const result = (amendments.resultLogs ?? []).map((entry) => ({ taskId, createdTime: nowMs, ...entry }));
  const context = logs.map(({ text, atMs }) => ({ log: text.replace(/\n$/, ""), taskId, createdTime: atMs }));
  const stack = outcome.kind === "failed" ? outcome.error.stack : undefined;
  return [...result, ...context, ...(stack === undefined ? [] : [{ log: stack, taskId, createdTime: nowMs }])];
}

/** A result as Conductor's SDKs write it. */
export interface ResultObject {
  readonly status: ResultStatus;
  readonly outputData?: { readonly [name: string]: unknown };
  readonly reasonForIncompletion?: string;
  readonly callbackAfterSeconds?: number;
  readonly logs?: readonly TaskExecLog[];
  readonly externalOutputPayloadStoragePath?: string;
  readonly subWorkflowId?: string;
}

/**
 * A result with a status and further fields, as the return value of a handler: `return taskResult({ status: "FAILED",
 * reasonForIncompletion: "no stock" })`.
 */
export function taskResult(result: ResultObject, context: Context = currentContext()): Ending | Deferral {
  const { status, outputData, reasonForIncompletion, callbackAfterSeconds, logs } = result;
  if (!resultStatuses.includes(status)) {
    const message = `The status of a task result is ${JSON.stringify(status)}, expected one of ${resultStatuses.join(", ")}.`;
    throw new LongshoreError("LONGSHORE_BAD_OUTPUT", message, { detail: { field: "status" } });
  }
  if (logs !== undefined) context.amend("resultLogs", logs as unknown as Json);
  const { externalOutputPayloadStoragePath, subWorkflowId } = result;
  const fields = { externalOutputPayloadStoragePath, subWorkflowId };
  if (Object.values(fields).some((field) => field !== undefined)) context.amend("resultFields", toJson(fields));
  if (status === "IN_PROGRESS") return inProgress(outputData, callbackAfterSeconds ?? 0);
  if (callbackAfterSeconds !== undefined) context.amend("resultCallbackAfterSeconds", seconds(callbackAfterSeconds));
  if (status === "COMPLETED") return { "longshore.ending": true, outcome: { kind: "done", output: outputData ?? {} } };
  const retryable = status === "FAILED";
  const message = reasonForIncompletion ?? "The handler reported a failure without a reason.";
  const output = outputData === undefined ? {} : { output: outputData };
  return { "longshore.ending": true, outcome: { kind: "failed", message, retryable, ...output } };
}

const inProgressSecondsDefault = 60;

/** The return value of a handler that wants to be called again after `callbackAfterSeconds`. `pollCount` is then the number of the call. */
export function inProgress(output?: unknown, callbackAfterSeconds: number = inProgressSecondsDefault): Deferral {
  return { "longshore.deferral": true, delayMs: seconds(callbackAfterSeconds) * 1_000, output };
}

export function seconds(value: number): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  const message = `callbackAfterSeconds is ${JSON.stringify(value)}, expected a number of seconds, 0 or more.`;
  throw new LongshoreError("LONGSHORE_BAD_OUTPUT", message, { detail: { field: "callbackAfterSeconds" } });
}
