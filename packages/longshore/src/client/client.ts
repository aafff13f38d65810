// What a program does with runs, the same for a server in its own process and for one behind a URL. `connect()` and `serve()` both return
// an implementation; one contract suite tests them.

import type { Duration } from "../core/duration.ts";
import type { RetryHint, Task } from "../core/task.ts";
import type { Schedule } from "../schedule.ts";
import type { Workflow } from "../workflow-value.ts";
import type { RunEvent } from "./run-event.ts";
import type { DefinedSchedule, ScheduleFilter, ScheduleHandle, ScheduleInfo } from "./schedule.ts";

/** A client starts runs and follows them. `connect(url)` returns a client, and the server of `serve()` is a client too. */
export interface Client {
  /** Starts a run of a workflow by its name, which must be defined already. Rejects with the same errors as the start of a workflow value. */
  start<Output = unknown>(workflow: string, input?: unknown, options?: StartOptions): Promise<RunHandle<Output>>;
  /**
   * Starts a run. A workflow value is defined first, with the workflows that it runs, and its input is checked against its schema. Rejects
   * with LONGSHORE_BAD_INPUT for an input that does not fit, and with LONGSHORE_CONFLICT for the key of a run with another input.
   */
  start<Input, Output>(
    workflow: string | Workflow<Input, Output>,
    input: NoInfer<Input>,
    options?: StartOptions,
  ): Promise<RunHandle<Output>>;
  /** The same as `start()` and `result()` together, with one request over HTTP. */
  execute<Output = unknown>(workflow: string, input?: unknown, options?: ExecuteOptions): Promise<Output>;
  /**
   * Starts a run and resolves with its output. Rejects with the errors of `start()` and of `result()`. The run continues when the caller stops
   * waiting.
   */
  execute<Input, Output>(workflow: string | Workflow<Input, Output>, input: NoInfer<Input>, options?: ExecuteOptions): Promise<Output>;
  /**
   * Sends an event: it starts a run of each workflow that listens for its name, with the payload as input. Resolves when the runs are stored; with
   * none when no workflow listens. Rejects with LONGSHORE_BAD_INPUT when the payload does not fit one of the workflows: then none is started.
   */
  emit(event: string, payload?: unknown, options?: EmitOptions): Promise<EmittedEvent>;
  /** Returns a handle of a run that was started before. Sends no request: with a wrong id, the first use of the handle fails. */
  run<Output = unknown>(id: string): RunHandle<Output>;
  /** The runs, newest first. Pages are read as the caller iterates. */
  runs(filter?: RunFilter): AsyncIterable<RunStatus>;
  /** Runs one task by its name; a worker of any protocol may have it. */
  call<Output = unknown>(task: string, input?: unknown, options?: CallOptions): Promise<Output>;
  /**
   * Runs one task durably, without a workflow, and resolves with its output. Rejects with LONGSHORE_TASK_FAILED when it has failed. The
   * task continues when the caller stops waiting. `retry` and `timeout` of a task value apply unless the options have others.
   */
  call<Input, Output>(task: string | Task<Input, Output>, input: NoInfer<Input>, options?: CallOptions): Promise<Output>;
  /** Stores a workflow, or a new version of it, so that it can be started by name. The workflows that it runs are stored before it. */
  define(workflow: Workflow, options?: RequestOptions): Promise<WorkflowVersion>;
  /**
   * Stores a schedule, or other rules for it, and the workflow that it starts. Rejects with LONGSHORE_BAD_INPUT for times that cannot be
   * understood, and with LONGSHORE_NOT_FOUND for the name of a workflow that is not defined.
   */
  define(schedule: Schedule, options?: RequestOptions): Promise<DefinedSchedule>;
  /** The newest version of each workflow, in the order in which they were first defined. Pages are read as the caller iterates. */
  definitions(filter?: DefinitionFilter): AsyncIterable<WorkflowVersion>;
  /** A handle of a schedule. Sends no request: with a wrong name, the first use of the handle fails. */
  schedule(name: string): ScheduleHandle;
  /** The schedules, in the order of their names. Pages are read as the caller iterates. */
  schedules(filter?: ScheduleFilter): AsyncIterable<ScheduleInfo>;
}

/** One run. */
export interface RunHandle<Output = unknown> {
  readonly id: string;
  /**
   * Waits for the end of the run and resolves with its output. Rejects with RunFailed when the run has failed, was cancelled or took too
   * long. Rejects with LONGSHORE_DEADLINE when it has not ended within `timeout`. The run continues when the caller stops waiting.
   */
  result(options?: WaitOptions): Promise<Output>;
  /** The current state of the run. */
  status(options?: RequestOptions): Promise<RunStatus<Output>>;
  /**
   * The current state of the run and of its tasks, then each change, until the run has ended. Continues after a restart of the server: of what
   * changed meanwhile, it reports the newest states.
   */
  events(options?: RequestOptions): AsyncIterable<RunEvent>;
  /**
   * Sends a signal. The step that waits for its name ends with this value; a signal that no step waits for is kept until one does. A
   * second signal with the same `key` changes nothing. Rejects with LONGSHORE_CONFLICT when the run has ended.
   */
  signal(name: string, value?: unknown, options?: SignalOptions): Promise<SentSignal>;
  /** Cancels the run unless it has ended; the reason becomes its error. Resolves with true when the run is cancelled, also by an earlier call. */
  cancel(reason?: string, options?: RequestOptions): Promise<boolean>;
  /** Repeats the steps that did not succeed, in the same run. Rejects with LONGSHORE_CONFLICT when the run is running, or has succeeded. */
  retry(options?: RequestOptions): Promise<void>;
  /** Starts a new run of the same version with the same input. */
  rerun(options?: RequestOptions): Promise<RunHandle<Output>>;
}

/** Options of every request. */
export interface RequestOptions {
  /** Ends the request, or the wait; the promise rejects with the reason of the signal. */
  signal?: AbortSignal;
}

/** The options of `start()`. */
export interface StartOptions extends RequestOptions {
  /** A second start of the workflow with the same key and the same input starts nothing and returns the first run. */
  key?: string;
  /** The run begins after this delay, also when the server was restarted in between. */
  delay?: Duration;
  /** Added to the priority of its tasks. Smaller is taken first. Default: 0. */
  priority?: number;
}

/** The options of `emit()`. */
export interface EmitOptions extends RequestOptions {
  /** A second event with the same name, key and payload starts nothing, and returns the first runs. */
  key?: string;
}

/** What an event has started. */
export interface EmittedEvent {
  readonly event: string;
  /** `created` is false for a run that an earlier event with the same key has started. */
  readonly runs: readonly { readonly workflow: string; readonly id: string; readonly created: boolean }[];
}

/** The options of `execute()`: those of `start()` and of `result()`. */
export interface ExecuteOptions extends StartOptions, WaitOptions {}

/** The options of `result()`. */
export interface WaitOptions extends RequestOptions {
  /** How long to wait. Default: until the end. */
  timeout?: Duration;
}

/** The options of `call()`. */
export interface CallOptions extends RequestOptions {
  /** Tasks with a smaller number start first. */
  priority?: number;
  /** The task starts after this delay. */
  delay?: Duration;
  retry?: RetryHint;
  /** The time limit of one attempt. */
  timeout?: Duration;
  labels?: readonly string[];
}

/** The options of `signal()`. */
export interface SignalOptions extends RequestOptions {
  /** A second signal to the run with the same key changes nothing. */
  key?: string;
}

/** Which runs to list; an absent field does not filter. */
export interface RunFilter extends RequestOptions {
  workflow?: string;
  state?: RunState;
}

/** Which workflows to list; an absent field does not filter. */
export interface DefinitionFilter extends RequestOptions {
  dialect?: string;
}

/** `blocked`: the code of the durable function does not match the journal of the run. The run waits for other code and a retry. */
export type RunState = "running" | "paused" | "blocked" | "succeeded" | "failed" | "cancelled" | "timed-out";

/** What an open run waits for. */
export interface RunWaiting {
  /**
   * `signal` and `sleeping`: it waits for a signal or a time. `no-worker`: no worker can take its step. `record`: it waits for a child run. `turn`: for its
   * turn, because its workflow has a start limit.
   */
  readonly reason:
    | "not-due"
    | "paused"
    | "limit"
    | "no-worker"
    | "busy"
    | "unreachable"
    | "sent"
    | "next"
    | "signal"
    | "turn"
    | "sleeping"
    | "record";
  /** For people, such as `waiting for signal "approve"`. */
  readonly text: string;
  /** When the wait ends, if that is known. */
  readonly at?: number;
  /** The name of the signal. */
  readonly signal?: string;
  /** The limit that is reached. */
  readonly key?: string;
  /** Labels that no live worker offers, and workers that could take the step. */
  readonly missing?: readonly string[];
  readonly workers?: readonly string[];
  /** The step that waits, and its task. Absent for a run that waits for its turn. */
  readonly step?: string;
  readonly taskId?: string;
  /** Of a run that waits for its turn: the oldest run before it. */
  readonly run?: string;
}

/** A run as the server shows it. Times are epoch milliseconds. */
export interface RunStatus<Output = unknown> {
  readonly id: string;
  readonly workflow: string;
  /** The version that it runs. A version that is defined later does not change it. */
  readonly definitionId: string;
  readonly state: RunState;
  readonly input: unknown;
  /** Null until the run has succeeded. */
  readonly output: Output | null;
  /** An object with the values that the run shows while it runs; null without any. */
  readonly variables: unknown;
  readonly error: string | null;
  readonly createdAt: number;
  /** When a run that was started with a delay begins; null once it has begun. */
  readonly startAt: number | null;
  readonly endedAt: number | null;
  /** When the run must have ended. */
  readonly endBy: number | null;
  readonly priority: number;
  /** Steps that have not settled, and steps that failed. */
  readonly left: number;
  readonly failed: number;
  /** How often it was retried after its end. */
  readonly retries: number;
  /** The id of this run in its protocol, when it has another one there. */
  readonly alias: string | null;
  /** The step of another run that waits for this one. */
  readonly parentTaskId: string | null;
  /**
   * What an open run waits for, such as `waiting for signal "approve"`; null while a worker has one of its first open steps. Absent in lists, and
   * for a run that has ended.
   */
  readonly waiting?: RunWaiting | null;
  /** How many signals were sent to it, and how many of them no step has taken. */
  readonly signals: { readonly sent: number; readonly kept: number };
}

/** The state of a signal. */
export interface SentSignal {
  /** The signal's place among the signals of the run, from 1. */
  readonly number: number;
  readonly name: string;
  /** `kept`: no step has taken it yet. `taken`: a step has it, or its value did not fit the schema of the step that waited. */
  readonly state: "kept" | "taken";
  /** Of a signal that is kept: the names of the signals that steps of the run wait for. A misspelt name shows here. */
  readonly awaited?: readonly string[];
}

/** A version of a workflow that a server has stored. */
export interface WorkflowVersion {
  readonly id: string;
  readonly name: string;
  /** Counts from 1 for each name. */
  readonly version: number;
  /** The language in which it is written. */
  readonly dialect: string;
  readonly createdAt: number;
}
