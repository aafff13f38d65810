// The worker side of Longshore: what a program needs that uses `task`, `work` and `workflow`. Importing this loads no server, database, broker or HTTP client.

export type { Backoff } from "./backoff.ts";
export type { Clock } from "./clock.ts";
export {
  type Blobs,
  type Context,
  type ContextIds,
  currentContext,
  type Deferral,
  type Ending,
  type OutputStream,
  type StepPart,
  withContext,
} from "./context.ts";
export type { Duration } from "./duration.ts";
export { type ErrorCode, type ErrorDetail, LongshoreError, TerminalError } from "./errors.ts";
export type { Json, JsonObject } from "./json.ts";
export type {
  EventName,
  Listener,
  Listeners,
  PollEvent,
  RequestEvent,
  TaskEvent,
  Told,
  WorkerEvents,
} from "./runner/events.ts";
export type { WorkerStatus, WorkerStatuses } from "./runner/health.ts";
export type { HttpOptions } from "./runner/http.ts";
export type { Logger, Notice } from "./runner/notices.ts";
export type { Counts, RunnerStatus, TransportStatus } from "./runner/status.ts";
export type { Span, SpanEnd, Telemetry, TracedWork, Tracer, WorkTrace } from "./runner/telemetry.ts";
export type { Failure, Outcome } from "./runner/transport.ts";
export type { JsonSchema } from "./schema/json-schema.ts";
export type { Schema, SchemaIssue, SchemaResult } from "./schema/schema.ts";
export type { SignalSource } from "./signal.ts";

export {
  describeTask,
  type Isolate,
  type RetryHint,
  type Task,
  type TaskDescription,
  type TaskOptions,
  type TaskOutput,
  type TaskSchemas,
  task,
} from "./task.ts";

export { type SpanIds, traceparent } from "./trace.ts";
export type { Verdict } from "./verdict.ts";
export { type WorkHandle, type WorkOptions, type WorkTarget, work } from "./work.ts";
export {
  type Arg,
  type Builder,
  type Known,
  type Ref,
  type StepOptions,
  type Workflow,
  type WorkflowOptions,
  workflow,
} from "./workflow.ts";
