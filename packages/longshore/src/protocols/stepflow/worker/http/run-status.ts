// Converts a run in the runtime's JSON-RPC form to the form for handlers.

import { LongshoreError } from "../../../../core/errors.ts";
import { isObject, type Json } from "../../../../core/json/json.ts";
import type { RunResult, RunState, RunStatus } from "../task-context.ts";

const states: readonly RunState[] = ["running", "completed", "failed", "cancelled", "paused"];

export function runStatusOf(answer: Json, method: string): RunStatus {
  if (!isObject(answer) || typeof answer.runId !== "string") {
    throw new LongshoreError("LONGSHORE_UNREACHABLE", `The runtime's response to ${method} cannot be read, expected a run with its runId.`);
  }
  const items = isObject(answer.items) ? answer.items : {};
  const count = (name: string) => (typeof items[name] === "number" ? (items[name] as number) : 0);
  return {
    runId: answer.runId,
    flowId: typeof answer.flowId === "string" ? answer.flowId : "",
    ...(typeof answer.flowName === "string" ? { flowName: answer.flowName } : {}),
    status: stateOf(answer.status),
    items: {
      total: count("total"),
      completed: count("completed"),
      running: count("running"),
      failed: count("failed"),
      cancelled: count("cancelled"),
    },
    ...(typeof answer.rootRunId === "string" ? { rootRunId: answer.rootRunId } : {}),
    ...(typeof answer.parentRunId === "string" ? { parentRunId: answer.parentRunId } : {}),
    results: Array.isArray(answer.results) ? answer.results.map(resultOf) : [],
  };
}

/** The documents write `success`, and the runtime writes `completed`. */
function stateOf(status: unknown): RunState {
  const text = typeof status === "string" ? status.toLowerCase() : "";
  return text === "success" ? "completed" : (states.find((state) => state === text) ?? "unspecified");
}

function resultOf(given: Json, at: number): RunResult {
  const item: { readonly [key: string]: unknown } = isObject(given) ? given : {};
  const result = isObject(item.result) ? item.result : {};
  const error = isObject(result.error) ? result.error : undefined;
  return {
    index: typeof item.itemIndex === "number" ? item.itemIndex : at,
    status: stateOf(item.status ?? (result.outcome === "failed" ? "failed" : result.outcome)),
    ...(result.outcome === "success" ? { output: (result.result ?? null) as Json } : {}),
    ...(error === undefined
      ? {}
      : { error: { ...(typeof error.code === "number" ? { code: error.code } : {}), message: String(error.message ?? "") } }),
  };
}
