// The context that is sent with all work: the run, the flow, the step, and the caller's span. With it, the spans and log lines of the work
// can be found.

import type { JsonObject } from "../../../core/json/json.ts";
import type { SpanIds } from "../../../core/trace.ts";

export interface Observability {
  readonly traceId?: string;
  readonly spanId?: string;
  readonly runId?: string;
  readonly flowId?: string;
  readonly stepId?: string;
}

/** JSON-RPC keys are snake_case in both dialects. */
export const observabilityKeys = {
  traceId: "trace_id",
  spanId: "span_id",
  runId: "run_id",
  flowId: "flow_id",
  stepId: "step_id",
} as const satisfies Record<keyof Observability, string>;

const names = Object.entries(observabilityKeys) as [keyof Observability, string][];

/** Absent fields are left out. */
export function observabilityJson(observability: Observability): JsonObject {
  const json: JsonObject = {};
  for (const [name, key] of names) {
    const value = observability[name];
    if (value !== undefined) json[key] = value;
  }
  return json;
}

/** The same context, with the span of a call that is made for this work. */
export function onBehalf(observability: Observability, trace: SpanIds | undefined): Observability {
  return trace === undefined ? observability : { ...observability, ...trace };
}
