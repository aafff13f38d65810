// The worker side of Longshore: the exports for programs that use `task`, `work` and `graph`. Importing this loads no server, database,
// broker or HTTP client.

export type { Backoff } from "./core/backoff.ts";
export type { Clock } from "./core/clock.ts";
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
} from "./core/context.ts";
export type { Debounce } from "./core/debounce.ts";
export type { Duration } from "./core/duration.ts";
export { type ErrorCode, type ErrorDetail, LongshoreError, TerminalError } from "./core/errors.ts";
export type { EventTrigger, EventValue } from "./core/event-trigger.ts";
export type { Json, JsonObject } from "./core/json/json.ts";
export type { Jsonify } from "./core/json/jsonify.ts";
export type { JsonSchema } from "./core/schema/json-schema.ts";
export type { Schema, SchemaIssue, SchemaResult } from "./core/schema/schema.ts";
export type { SignalSource } from "./core/signal.ts";
export type { StartLimit } from "./core/start-limit.ts";
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
} from "./core/task.ts";
export { type SpanIds, traceparent } from "./core/trace.ts";
export type { Verdict } from "./core/verdict.ts";
export {
  type GraphBuilder,
  type GraphOptions,
  type GraphWorkflow,
  graph,
  type MapOptions,
  type RunStepOptions,
  type StepOptions,
  type WaitForSignalOptions,
  type WaitOptions,
} from "./graph.ts";
export type { Arg, Known, Ref } from "./reference.ts";
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
export type { ChildOptions, CommandOptions, FunctionScope, LocalOptions, SignalOptions } from "./runner/function/scope.ts";
export { StepError } from "./runner/function/step-error.ts";
export type { WorkerStatus, WorkerStatuses } from "./runner/health.ts";
export type { HttpOptions } from "./runner/http.ts";
export type { Logger, Notice } from "./runner/notices.ts";
export type { Counts, RunnerStatus, TransportStatus } from "./runner/status.ts";
export type { Span, SpanEnd, Telemetry, TracedWork, Tracer, WorkTrace } from "./runner/telemetry.ts";
export type { Failure, Outcome } from "./runner/transport.ts";
export { type Schedule, type ScheduleOptions, type ScheduleTimes, schedule } from "./schedule.ts";
export { type WorkHandle, type WorkOptions, type WorkSource, type WorkTarget, work } from "./work.ts";
export { type FunctionWorkflow, type WorkflowOptions, workflow } from "./workflow.ts";
export type { Workflow } from "./workflow-value.ts";
