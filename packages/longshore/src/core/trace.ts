// The ids of a distributed trace, as W3C Trace Context and OpenTelemetry write them.

/** One span: 32 and 16 digits of lower-case hex. */
export interface SpanIds {
  readonly traceId: string;
  readonly spanId: string;
}

const zeros = /^0+$/;

/** Ids from a header, or undefined when they are invalid: a broken trace must never break the work. */
export function spanIdsOf(traceId: unknown, spanId: unknown): SpanIds | undefined {
  if (typeof traceId !== "string" || typeof spanId !== "string") return undefined;
  const ids = { traceId: traceId.toLowerCase(), spanId: spanId.toLowerCase() };
  const wellFormed = /^[0-9a-f]{32}$/.test(ids.traceId) && /^[0-9a-f]{16}$/.test(ids.spanId);
  return wellFormed && !zeros.test(ids.traceId) && !zeros.test(ids.spanId) ? ids : undefined;
}

/** The value of the HTTP header `traceparent`, which passes a span on. */
export function traceparent({ traceId, spanId }: SpanIds): string {
  return `00-${traceId}-${spanId}-01`;
}
