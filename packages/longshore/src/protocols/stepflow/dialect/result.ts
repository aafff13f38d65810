// The result of a step and of a flow (FlowResult). The board stores a component's error in two fields: the message is the error of the
// record, and the complete FlowResult is its output.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { parseExact, writeExact } from "../../../core/json/json-exact.ts";
import type { FailureReport } from "../../../engine/board/board.ts";
import { isCancelled, type TaskRow } from "../../../engine/board/task.ts";
import { isRunOpen, type Run } from "../../../engine/run/run.ts";
import type { TaskErrorCode } from "../wire/messages.ts";

export interface FlowError {
  readonly code: TaskErrorCode;
  readonly message: string;
  readonly data?: Json;
}

export type FlowResult = { readonly outcome: "success"; readonly result: Json } | { readonly outcome: "failed"; readonly error: FlowError };

/** `inherited`: the step was not executed, because a step whose result it needs has failed. */
export type StepResult = FlowResult & { readonly inherited?: true };

/** The report to the board when a component failed or could not be reached. */
export function failureReport(error: FlowError): FailureReport {
  return { error: error.message, output: writeExact(failed(error)), ...budget(error.code) };
}

/** Transport errors have a retry budget of their own. A failure of the component is retried only if the step's `onError` is `retry`. */
function budget(code: TaskErrorCode): Pick<FailureReport, "retryable" | "spends"> {
  if (code === "TIMEOUT" || code === "UNREACHABLE") return { retryable: true, spends: "lost" };
  return { retryable: code === "COMPONENT_FAILED" || code === "RESOURCE_UNAVAILABLE" };
}

export function success(result: Json): FlowResult {
  return { outcome: "success", result };
}

export function failed(error: FlowError): FlowResult {
  return { outcome: "failed", error };
}

/** An error that the orchestrator itself found. Its data has the chain of causes, outermost first. */
export function orchestratorError(code: TaskErrorCode, message: string, causes: readonly string[] = []): FlowError {
  return { code, message, data: { stack: [message, ...causes].map((error) => ({ error, attachments: [] })) } };
}

/** The error of a record that ended without a result. A worker of any protocol, or a timeout, may have ended it. */
export function errorOf(task: Pick<TaskRow, "state" | "output" | "error" | "fault">): FlowError {
  const result = flowResultIn(task.output);
  if (result?.outcome === "failed") return result.error;
  if (isCancelled(task)) return { code: "CANCELLED", message: task.error ?? "the step was cancelled" };
  const code = task.fault === "lost" || task.fault === "timed-out" ? "TIMEOUT" : "COMPONENT_FAILED";
  return { code, message: task.error ?? "the step failed" };
}

/** The result of a run of a flow; null while it is open. */
export function flowResultOf({ state, output, error }: Pick<Run, "state" | "output" | "error">): FlowResult | null {
  if (isRunOpen(state)) return null;
  if (state === "succeeded") return success(output === null ? null : (parseExact(output) as Json));
  const result = flowResultIn(output);
  if (result?.outcome === "failed") return failed(result.error);
  const code = state === "cancelled" ? "CANCELLED" : state === "timed-out" ? "TIMEOUT" : "ORCHESTRATOR_ERROR";
  return failed({ code, message: error ?? `the run was ${state}` });
}

/** Null when the text is not a FlowResult. */
export function flowResultIn(text: string | null): StepResult | null {
  // Cheap check: most outputs are not parsed.
  if (text === null || !text.startsWith('{"outcome":')) return null;
  const value = parseExact(text) as JsonObject;
  if (value.outcome === "success" && Object.hasOwn(value, "result")) return value as unknown as FlowResult;
  return value.outcome === "failed" && isObject(value.error) ? (value as unknown as StepResult) : null;
}
