// OTLP's messages in protobuf (opentelemetry-proto 1.x), as much of them as a worker writes and a collector answers.

import { message, service } from "../../src/net/protobuf/protobuf.ts";

const AnyValue = message("AnyValue", {
  stringValue: [1, "string", "oneof value"],
  boolValue: [2, "bool", "oneof value"],
  intValue: [3, "int64", "oneof value"],
  doubleValue: [4, "double", "oneof value"],
});
const KeyValue = message("KeyValue", { key: [1, "string"], value: [2, AnyValue] });
const Resource = message("Resource", { attributes: [1, KeyValue, "repeated"] });
const InstrumentationScope = message("InstrumentationScope", { name: [1, "string"], version: [2, "string"] });

const SpanEvent = message("Span.Event", {
  timeUnixNano: [1, "fixed64"],
  name: [2, "string"],
  attributes: [3, KeyValue, "repeated"],
});
const Status = message("Status", { message: [2, "string"], code: [3, "enum"] });
const Span = message("Span", {
  traceId: [1, "bytes"],
  spanId: [2, "bytes"],
  parentSpanId: [4, "bytes"],
  name: [5, "string"],
  kind: [6, "enum"],
  startTimeUnixNano: [7, "fixed64"],
  endTimeUnixNano: [8, "fixed64"],
  attributes: [9, KeyValue, "repeated"],
  events: [11, SpanEvent, "repeated"],
  status: [15, Status],
  flags: [16, "fixed32"],
});
const ScopeSpans = message("ScopeSpans", { scope: [1, InstrumentationScope], spans: [2, Span, "repeated"] });
const ResourceSpans = message("ResourceSpans", { resource: [1, Resource], scopeSpans: [2, ScopeSpans, "repeated"] });
const ExportTraceServiceRequest = message("ExportTraceServiceRequest", { resourceSpans: [1, ResourceSpans, "repeated"] });
const ExportTracePartialSuccess = message("ExportTracePartialSuccess", { rejectedSpans: [1, "int64"], errorMessage: [2, "string"] });
const ExportTraceServiceResponse = message("ExportTraceServiceResponse", { partialSuccess: [1, ExportTracePartialSuccess] });

const LogRecord = message("LogRecord", {
  timeUnixNano: [1, "fixed64"],
  severityNumber: [2, "enum"],
  severityText: [3, "string"],
  body: [5, AnyValue],
  attributes: [6, KeyValue, "repeated"],
  flags: [8, "fixed32"],
  traceId: [9, "bytes"],
  spanId: [10, "bytes"],
  observedTimeUnixNano: [11, "fixed64"],
});
const ScopeLogs = message("ScopeLogs", { scope: [1, InstrumentationScope], logRecords: [2, LogRecord, "repeated"] });
const ResourceLogs = message("ResourceLogs", { resource: [1, Resource], scopeLogs: [2, ScopeLogs, "repeated"] });
const ExportLogsServiceRequest = message("ExportLogsServiceRequest", { resourceLogs: [1, ResourceLogs, "repeated"] });
const ExportLogsPartialSuccess = message("ExportLogsPartialSuccess", { rejectedLogRecords: [1, "int64"], errorMessage: [2, "string"] });
const ExportLogsServiceResponse = message("ExportLogsServiceResponse", { partialSuccess: [1, ExportLogsPartialSuccess] });

export const TraceService = service("opentelemetry.proto.collector.trace.v1.TraceService", {
  Export: [ExportTraceServiceRequest, ExportTraceServiceResponse],
});
export const LogsService = service("opentelemetry.proto.collector.logs.v1.LogsService", {
  Export: [ExportLogsServiceRequest, ExportLogsServiceResponse],
});
