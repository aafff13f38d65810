// The client of a Longshore server. It needs nothing but `fetch`: no module of Node, no package.

export { type ErrorCode, type ErrorDetail, LongshoreError } from "../core/errors.ts";
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
} from "./client.ts";
export { type ConnectOptions, connect } from "./connect.ts";
export type { RunChanged, RunEvent, TaskChanged } from "./run-event.ts";
export { RunFailed } from "./run-failed.ts";
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
} from "./schedule.ts";
