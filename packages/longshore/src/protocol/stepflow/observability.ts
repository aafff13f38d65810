// The context that travels with every piece of work, so that its spans and log lines are found again: which run, which flow, which step,
// and the caller's span. The names of the span and its attributes are those of Stepflow's worker guide; the short ones beside them are
// what its Python SDK writes.

import type { JsonObject } from "../../json.ts";
import type { WorkTrace } from "../../runner/telemetry.ts";
import { type SpanIds, spanIdsOf } from "../../trace.ts";

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

export function workTrace(
  observability: Observability,
  about: { component: string; attempt: number; kind: "server" | "consumer" },
): WorkTrace {
  const { flowId } = observability;
  const parent = spanIdsOf(observability.traceId, observability.spanId);
  return {
    ...(parent === undefined ? {} : { parent }),
    name: "component.execute",
    kind: about.kind,
    // Asked for only where somebody traces.
    get attributes() {
      return attributesOf(observability, about);
    },
    ...(flowId === undefined ? {} : { fields: { flow_id: flowId } }),
  };
}

function attributesOf({ runId, flowId, stepId }: Observability, about: { component: string; attempt: number }) {
  const { component, attempt } = about;
  const attributes: Record<string, string | number> = { "stepflow.component": component, component, attempt };
  for (const [name, value] of [["run_id", runId] as const, ["flow_id", flowId] as const, ["step_id", stepId] as const]) {
    if (value === undefined) continue;
    attributes[`stepflow.${name}`] = value;
    attributes[name] = value;
  }
  return attributes;
}
