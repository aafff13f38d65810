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

/** The ids in the value of the header `traceparent`; undefined when it is absent or invalid. */
export function spanIdsOfHeader(value: unknown): SpanIds | undefined {
  const [version, traceId, spanId, flags] = typeof value === "string" ? value.split("-") : [];
  return version === undefined || flags === undefined ? undefined : spanIdsOf(traceId, spanId);
}

/** A span that is over, with ids that were known before it began. */
export interface FinishedSpan {
  readonly ids: SpanIds;
  readonly parent?: SpanIds;
  /** A span of another trace that caused this one. */
  readonly cause?: SpanIds;
  readonly name: string;
  /** Milliseconds since the epoch. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  /** Absent when it succeeded. */
  readonly error?: string;
}

/** Receives finished spans. Must neither wait nor throw. */
export interface SpanWriter {
  write(span: FinishedSpan): void;
}
