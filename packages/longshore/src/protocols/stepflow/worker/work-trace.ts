// The trace that a component's execution belongs to. The names of the span and its attributes are those of Stepflow's worker guide; the
// short names are those of its Python SDK.

import { spanIdsOf } from "../../../core/trace.ts";
import type { WorkTrace } from "../../../runner/telemetry.ts";
import type { Observability } from "../wire/observability.ts";

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
    // A getter, because it is read only with a tracer.
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
