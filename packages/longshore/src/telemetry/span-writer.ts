// Writes spans with computed ids. The server writes the span of a run when the run ends, but workers use it as a parent before. The SDK
// takes the ids of its spans from a generator, which gets them here just before a span starts.

import { cutMiddle } from "../core/text.ts";
import type { FinishedSpan, SpanIds, SpanWriter } from "../core/trace.ts";
import type { Api } from "./packages.ts";

type ApiTracer = ReturnType<Api["trace"]["getTracer"]>;

/** A generator of the SDK. */
interface IdGenerator {
  generateTraceId(): string;
  generateSpanId(): string;
}

/** Returns the ids that were set for the next span. When none were set, uses another generator. */
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
/**
 * Maximum characters of an error on a span; the run has all of it. Up to 8,192 spans wait for a collector, and a batch of 512 is written as
 * one text.
 */
const errorCharsMax = 1_024;
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
      if (error !== undefined) span.setStatus({ code: statusError, message: cutMiddle(error, errorCharsMax) });
      span.end(new Date(endMs));
    },
  };
}
