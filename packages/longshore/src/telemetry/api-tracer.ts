// Sends spans through OpenTelemetry's own API. They go to the SDK that the program has set up, or to the SDK that `telemetry()` sets up for
// a collector. In the first case, the program's instrumentations find the span of the running handler.

import { packageVersion } from "../core/version.ts";
import type { Span, SpanEnd, TracedWork, Tracer } from "../runner/telemetry.ts";
import { installed } from "./packages.ts";
import type { AttributeValue } from "./records.ts";

/**
 * The part of `@opentelemetry/api` (1.x) that is used. Contexts and spans are opaque: they are passed back unchanged, so the types here
 * accept those of any version.
 */
export interface OpenTelemetryApi {
  readonly trace: {
    getTracer(name: string, version?: string): ApiTracer;
    setSpan(context: never, span: never): unknown;
    setSpanContext(context: never, spanContext: never): unknown;
  };
  readonly context: { with(context: never, fn: never): unknown };
  readonly ROOT_CONTEXT: unknown;
}

interface ApiTracer {
  startSpan(name: string, options: never, context: never): ApiSpan;
}

interface ApiSpan {
  spanContext(): { readonly traceId: string; readonly spanId: string };
  setAttributes(attributes: never): unknown;
  recordException(exception: never): void;
  setStatus(status: never): unknown;
  end(): void;
}

/** Constants of the API, which are part of its contract. */
const kinds = { server: 1, consumer: 4 } as const;
const statusError = 2;
const sampled = 1;

export function apiTracer(api: OpenTelemetryApi, tracer: ApiTracer = api.trace.getTracer("longshore", packageVersion())): Tracer {
  return { begin: (work) => begin(work, tracer, api) };
}

function begin(work: TracedWork, tracer: ApiTracer, api: OpenTelemetryApi): Span {
  const { parent, name = "task.execute", kind = "consumer" } = work.trace;
  const remote = parent === undefined ? undefined : { ...parent, traceFlags: sampled, isRemote: true };
  const above = remote === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT as never, remote as never);
  const span = tracer.startSpan(name, { kind: kinds[kind] } as never, above as never);
  const inside = api.trace.setSpan(above as never, span as never);
  const { traceId, spanId } = span.spanContext();
  return {
    ids: { traceId, spanId },
    run: <Result>(fn: () => Result) => api.context.with(inside as never, fn as never) as Result,
    end: (end) => finish(span, work, end),
  };
}

function finish(span: ApiSpan, work: TracedWork, { task, error }: SpanEnd): void {
  span.setAttributes(attributesOf(work, task) as never);
  if (error !== undefined) {
    const { name, message, stack } = error;
    span.recordException({ name, message, ...(stack === undefined ? {} : { stack }) } as never);
    span.setStatus({ code: statusError, message } as never);
  }
  span.end();
}

/** The attributes of every span, on any protocol. Attributes of the protocol are added last. */
function attributesOf({ transport, worker, ids, attempt, trace }: TracedWork, task: string): Readonly<Record<string, AttributeValue>> {
  const attributes: Record<string, AttributeValue> = {
    "longshore.task": task,
    "longshore.transport": transport,
    "longshore.task_id": ids.taskId,
    "longshore.attempt": attempt,
  };
  if (ids.runId !== "") attributes["longshore.run_id"] = ids.runId;
  if (ids.stepId !== "") attributes["longshore.step_id"] = ids.stepId;
  if (worker !== undefined) attributes["longshore.worker"] = worker;
  return { ...attributes, ...trace.attributes };
}

/** Loads the API that is installed next to this package. */
export function loadApi(load: () => Promise<unknown> = () => import("@opentelemetry/api")): Promise<OpenTelemetryApi> {
  return installed(async () => (await load()) as OpenTelemetryApi, "The option `api: true`", "npm install @opentelemetry/api");
}
