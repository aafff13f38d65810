// Passes log records to OpenTelemetry's SDK.

import type { Api, LogSdk } from "./packages.ts";
import type { AttributeValue, Level, LogRecord } from "./records.ts";

type Logger = ReturnType<InstanceType<LogSdk["LoggerProvider"]>["getLogger"]>;

/** OpenTelemetry's severity numbers. */
const severities: Readonly<Record<Level, number>> = { DEBUG: 5, INFO: 9, WARNING: 13, ERROR: 17 };
const sampled = 1;

export function recordLogger({ trace: spans, ROOT_CONTEXT }: Api, logger: Logger): (record: LogRecord) => void {
  return ({ atMs, level, message, logger: name, context, trace, fields }) => {
    const at = timeOf(atMs);
    logger.emit({
      timestamp: at,
      observedTimestamp: at,
      severityNumber: severities[level],
      severityText: level,
      body: message,
      attributes: { logger: name, ...context, ...flat(fields) },
      context: trace === undefined ? ROOT_CONTEXT : spans.setSpanContext(ROOT_CONTEXT, { ...trace, traceFlags: sampled }),
    });
  };
}

/** Seconds and nanoseconds: the SDK may take a single number for the time since the process started. */
function timeOf(ms: number): [seconds: number, nanos: number] {
  const seconds = Math.floor(ms / 1_000);
  return [seconds, Math.round((ms - seconds * 1_000) * 1_000) * 1_000];
}

/** Attributes are scalars; objects and lists are written as JSON. */
function flat(fields: Readonly<Record<string, unknown>>): Record<string, AttributeValue> {
  const plain: Record<string, AttributeValue> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") plain[key] = value;
    else if (value !== undefined && value !== null) plain[key] = textOf(value);
  }
  return plain;
}

/** One field must not make the record fail: JSON refuses a cycle and a bigint, and has no text for a function. */
function textOf(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value);
  } catch {
    return String(value);
  }
}
