// The context that travels with every piece of work, so that its spans and log lines are found again: which run, which flow, which step,
// and the caller's span.

import type { JsonObject } from "../../../core/json/json.ts";
import type { SpanIds } from "../../../core/trace.ts";

export interface Observability {
  readonly traceId?: string;
  readonly spanId?: string;
  readonly runId?: string;
  readonly flowId?: string;
  readonly stepId?: string;
}

/** On the wire of JSON-RPC the keys are snake_case, in both dialects. */
export const observabilityKeys = {
  traceId: "trace_id",
  spanId: "span_id",
  runId: "run_id",
  flowId: "flow_id",
  stepId: "step_id",
} as const satisfies Record<keyof Observability, string>;

const names = Object.entries(observabilityKeys) as [keyof Observability, string][];

/** Only what is there: absent fields are left out. */
export function observabilityJson(observability: Observability): JsonObject {
  const json: JsonObject = {};
  for (const [name, key] of names) {
    const value = observability[name];
    if (value !== undefined) json[key] = value;
  }
  return json;
}

/** The same work, with the span that a call on its behalf belongs to. */
export function onBehalf(observability: Observability, trace: SpanIds | undefined): Observability {
  return trace === undefined ? observability : { ...observability, ...trace };
}
