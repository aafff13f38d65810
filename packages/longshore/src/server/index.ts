// The server side of Longshore.

export type {
  CallOptions,
  Client,
  DefinitionFilter,
  EmitOptions,
  EmittedEvent,
  ExecuteOptions,
  RequestOptions,
  RunFilter,
  RunHandle,
  RunState,
  RunStatus,
  SentSignal,
  SignalOptions,
  StartOptions,
  WaitOptions,
  WorkflowVersion,
} from "../client/client.ts";
export type { RunChanged, RunEvent, TaskChanged } from "../client/run-event.ts";
export { RunFailed } from "../client/run-failed.ts";
export type {
  BackfillRange,
  BackfillStatus,
  DefinedSchedule,
  RunNowOptions,
  ScheduleFilter,
  ScheduleHandle,
  ScheduleInfo,
  ScheduleStatus,
  ScheduleTick,
} from "../client/schedule.ts";
export type { RetentionPolicy, RetentionSettings } from "../engine/run/retention.ts";
export type { HttpLimits } from "../net/listener/limits.ts";
export { dataDefault, portDefault, type ServeOptions } from "./config.ts";
export { type Config, defineConfig } from "./define-config.ts";
export type { FailureNews } from "./failed-runs.ts";
export type { RunResult, Server } from "./handle.ts";
export { serve } from "./server.ts";
export type { WaitingNews } from "./waiting-tasks.ts";
export type { LoadedWorkflows } from "./workflows.ts";
