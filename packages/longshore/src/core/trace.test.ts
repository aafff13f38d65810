import { expect, it } from "vitest";
import { spanIdsOf, traceparent } from "./trace.ts";

const traceId = "a1b2c3d4e5f67890a1b2c3d4e5f67890";
const spanId = "1234567890abcdef";

it("[S-OBS-06] ids of traces and spans have 32 and 16 hexadecimal digits, and anything else is ignored", () => {
  expect(spanIdsOf(traceId, spanId)).toEqual({ traceId, spanId });
  expect(spanIdsOf(traceId.toUpperCase(), spanId.toUpperCase())).toEqual({ traceId, spanId });
  const broken: [unknown, unknown][] = [
    [traceId.slice(1), spanId],
    [traceId, `${spanId}0`],
    [traceId.replace("a", "g"), spanId],
    ["0".repeat(32), spanId],
    [traceId, "0".repeat(16)],
    [undefined, spanId],
    [traceId, 5],
  ];
  for (const [trace, span] of broken) expect(spanIdsOf(trace, span)).toBeUndefined();
});

it("a span is passed on over HTTP in one header", () => {
  expect(traceparent({ traceId, spanId })).toBe(`00-${traceId}-${spanId}-01`);
});
