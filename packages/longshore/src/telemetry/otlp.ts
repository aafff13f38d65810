// Spans and log records as OpenTelemetry's OTLP has them (opentelemetry-proto 1.x), in its JSON form: ids in hex, 64-bit numbers as texts.

import { hostname } from "node:os";
import { packageVersion } from "../version.ts";
import type { Attributes, Level, LogRecord, SpanRecord } from "./records.ts";

export interface AnyValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: string;
  readonly doubleValue?: number;
}

export interface KeyValue {
  readonly key: string;
  readonly value: AnyValue;
}

export interface Resource {
  readonly attributes: readonly KeyValue[];
}

export interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly KeyValue[];
  readonly events: readonly { readonly timeUnixNano: string; readonly name: string; readonly attributes: readonly KeyValue[] }[];
  readonly status: { readonly code: number; readonly message?: string };
  readonly flags: number;
}

export interface OtlpLogRecord {
  readonly timeUnixNano: string;
  readonly observedTimeUnixNano: string;
  readonly severityNumber: number;
  readonly severityText: string;
  readonly body: AnyValue;
  readonly attributes: readonly KeyValue[];
  readonly traceId?: string;
  readonly spanId?: string;
  readonly flags?: number;
}

export interface TracesRequest {
  readonly resourceSpans: readonly {
    readonly resource: Resource;
    readonly scopeSpans: readonly { readonly scope: Scope; readonly spans: readonly OtlpSpan[] }[];
  }[];
}

export interface LogsRequest {
  readonly resourceLogs: readonly {
    readonly resource: Resource;
    readonly scopeLogs: readonly { readonly scope: Scope; readonly logRecords: readonly OtlpLogRecord[] }[];
  }[];
}

interface Scope {
  readonly name: string;
  readonly version: string;
}

const scope: Scope = { name: "longshore", version: packageVersion() };

const spanKinds = { server: 2, consumer: 5 } as const;
const statusError = 2;
/** SpanFlags: sampled, and whether the parent is another process's, which it always is when there is one. */
const sampled = 0x001;
const knowsRemote = 0x100;
const isRemote = 0x200;

const severities: Readonly<Record<Level, number>> = { DEBUG: 5, INFO: 9, WARNING: 13, ERROR: 17 };

/** Attributes of this process, by OpenTelemetry's names. */
export function resourceOf(service: string, more: Readonly<Record<string, string>>): Resource {
  const own = {
    "service.name": service,
    "service.instance.id": `${hostname()}-${process.pid}`,
    "host.name": hostname(),
    "process.pid": process.pid,
    "process.runtime.name": "nodejs",
    "process.runtime.version": process.versions.node,
    "telemetry.sdk.name": scope.name,
    "telemetry.sdk.language": "nodejs",
    "telemetry.sdk.version": scope.version,
  };
  return { attributes: keyValues({ ...own, ...more }) };
}

export function tracesRequest(resource: Resource, spans: readonly SpanRecord[]): TracesRequest {
  return { resourceSpans: [{ resource, scopeSpans: [{ scope, spans: spans.map(spanOf) }] }] };
}

export function logsRequest(resource: Resource, records: readonly LogRecord[]): LogsRequest {
  return { resourceLogs: [{ resource, scopeLogs: [{ scope, logRecords: records.map(logOf) }] }] };
}

function spanOf({ ids, parentSpanId, name, kind, startMs, endMs, attributes, error }: SpanRecord): OtlpSpan {
  return {
    ...ids,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name,
    kind: spanKinds[kind],
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(Math.max(startMs, endMs)),
    attributes: keyValues(attributes),
    events: error === undefined ? [] : [{ timeUnixNano: nanos(endMs), name: "exception", attributes: exceptionOf(error) }],
    status: error === undefined ? { code: 0 } : { code: statusError, message: error.message },
    flags: sampled | knowsRemote | (parentSpanId === undefined ? 0 : isRemote),
  };
}

function exceptionOf({ name, message, stack }: NonNullable<SpanRecord["error"]>): readonly KeyValue[] {
  return keyValues({
    "exception.type": name,
    "exception.message": message,
    ...(stack === undefined ? {} : { "exception.stacktrace": stack }),
  });
}

function logOf({ atMs, level, message, logger, context, trace, fields }: LogRecord): OtlpLogRecord {
  return {
    timeUnixNano: nanos(atMs),
    observedTimeUnixNano: nanos(atMs),
    severityNumber: severities[level],
    severityText: level,
    body: { stringValue: message },
    attributes: keyValues({ logger, ...context, ...flat(fields) }),
    ...(trace === undefined ? {} : { ...trace, flags: sampled }),
  };
}

/** Attributes are plain values; whatever has parts is written as JSON. */
function flat(fields: Readonly<Record<string, unknown>>): Attributes {
  const plain: Record<string, string | number | boolean> = {};
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === "string" || typeof value === "number" || typeof value === "boolean") plain[key] = value;
    else if (value !== undefined && value !== null) plain[key] = JSON.stringify(value) ?? String(value);
  }
  return plain;
}

function keyValues(attributes: Attributes): readonly KeyValue[] {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: string | number | boolean): AnyValue {
  if (typeof value === "string") return { stringValue: value };
  if (typeof value === "boolean") return { boolValue: value };
  return Number.isSafeInteger(value) ? { intValue: String(value) } : { doubleValue: value };
}

/** A number of JavaScript cannot hold nanoseconds since 1970. */
function nanos(ms: number): string {
  return String(BigInt(Math.round(ms * 1_000)) * 1_000n);
}
