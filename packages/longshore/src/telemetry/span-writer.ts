// Writes spans whose ids are computed: a server writes the span of a run when the run ends, and workers name it as the parent of theirs long
// before. The SDK makes the ids of its spans by a generator, which gets the ids here just before a span starts.

import type { FinishedSpan, SpanIds, SpanWriter } from "../core/trace.ts";
import type { Api } from "./packages.ts";

type ApiTracer = ReturnType<Api["trace"]["getTracer"]>;

/** A generator of the SDK. */
interface IdGenerator {
  generateTraceId(): string;
  generateSpanId(): string;
}

/** Returns the ids that are given for the next span; without them, those of another generator. */
export class GivenIds implements IdGenerator {
  readonly #others: IdGenerator;
  given: SpanIds | undefined;

  constructor(others: IdGenerator) {
    this.#others = others;
  }

  generateTraceId = (): string => this.given?.traceId ?? this.#others.generateTraceId();

  generateSpanId = (): string => this.given?.spanId ?? this.#others.generateSpanId();
}

const statusError = 2;
const sampled = 1;

export function spanWriter(api: Api, tracer: ApiTracer, ids: GivenIds): SpanWriter {
  const contextOf = (span: SpanIds) => ({ ...span, traceFlags: sampled, isRemote: false });
  return {
    write({ ids: own, parent, cause, name, startMs, endMs, attributes, error }: FinishedSpan) {
      const above = parent === undefined ? api.ROOT_CONTEXT : api.trace.setSpanContext(api.ROOT_CONTEXT, contextOf(parent));
      const links = cause === undefined ? [] : [{ context: contextOf(cause) }];
      ids.given = own;
      const span = tracer.startSpan(name, { startTime: new Date(startMs), attributes: { ...attributes }, links }, above);
      ids.given = undefined;
      if (error !== undefined) span.setStatus({ code: statusError, message: error });
      span.end(new Date(endMs));
    },
  };
}
