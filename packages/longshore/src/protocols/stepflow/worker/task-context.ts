// What only Stepflow offers to a handler: its place in the flow, JSON blobs, and runs of other flows. `ctx` itself is the same on every
// protocol. These calls use `ctx.ask`, so they also work in threads and processes.

import { type Context, currentContext } from "../../../core/context.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { toJson } from "../../../core/json/to-json.ts";

/** `ctx.native` of a task that came from a Stepflow orchestrator. */
export interface StepflowNative extends StepflowPlace {
  readonly stepflow: true;
}

/** Which component was called, and for which step of which run. */
export interface StepflowPlace {
  /** The component's name as the orchestrator called it. */
  readonly component: string;
  /** The values of the placeholders in the component's path. */
  readonly pathParams: Readonly<Record<string, string>>;
  readonly runId?: string;
  readonly rootRunId?: string;
  readonly flowId?: string;
  readonly stepId?: string;
}

/** What Stepflow offers to a running component, from `stepflowTask()`. */
export interface StepflowTask extends StepflowPlace {
  readonly attempt: number;
  /** Stores JSON with the orchestrator and returns its id, 64 hexadecimal digits. For bytes use `ctx.blobs`. */
  putBlob(data: unknown): Promise<string>;
  /** Rejects with LONGSHORE_NOT_FOUND when there is no such blob, and with LONGSHORE_BAD_INPUT when it is not JSON. */
  getBlob(id: string): Promise<Json>;
  /** Starts a run of a flow. A later attempt that requests the same runs in the same order gets the runs of the earlier attempt. */
  submitRun(request: RunRequest): Promise<RunStatus>;
  getRun(runId: string, options?: GetRunOptions): Promise<RunStatus>;
  /** Starts a run for one input and waits for its output. Rejects when it fails, and with the signal's reason when this task is stopped. */
  evaluate(request: Omit<RunRequest, "input" | "wait" | "timeoutSecs"> & { readonly input: unknown }): Promise<Json>;
}

/** A flow to run, and its inputs. */
export interface RunRequest {
  /** The flow itself, or the id under which the orchestrator stores it: set one of the two. */
  readonly flow?: unknown;
  readonly flowId?: string;
  /** The run has one item for each element of this list. */
  readonly input: readonly unknown[];
  readonly overrides?: unknown;
  readonly variables?: { readonly [name: string]: unknown };
  readonly maxConcurrency?: number;
  /** Returns when the run has ended, or after `timeoutSecs` with its state at that time. */
  readonly wait?: boolean;
  readonly timeoutSecs?: number;
  /** The same key within one root run starts only one run. Default: made from the task and a counter. */
  readonly key?: string;
}

/** What to wait for and what to return when a run is read. */
export interface GetRunOptions {
  readonly wait?: boolean;
  readonly timeoutSecs?: number;
  readonly results?: boolean;
  readonly order?: "index" | "completion";
}

/** The calls of a StepflowTask; `callbacks.ts` serves them. */
export type Question = "putBlob" | "getBlob" | "submitRun" | "getRun" | "evaluate";

/** The state of a run or of one of its items. */
export type RunState = "unspecified" | "running" | "completed" | "failed" | "cancelled" | "paused" | "recovery-failed";

/** A run with the state of its items. */
export interface RunStatus {
  readonly runId: string;
  readonly flowId: string;
  readonly flowName?: string;
  readonly status: RunState;
  readonly items: {
    readonly total: number;
    readonly completed: number;
    readonly running: number;
    readonly failed: number;
    readonly cancelled: number;
  };
  readonly rootRunId?: string;
  readonly parentRunId?: string;
  /** Present with `wait` or `results`. */
  readonly results: readonly RunResult[];
}

/** The result of one item of a run. */
export interface RunResult {
  readonly index: number;
  readonly status: RunState;
  readonly output?: Json;
  readonly error?: { readonly code?: number; readonly message: string };
}

/** The Stepflow task of the calling handler. Throws LONGSHORE_CLOSED outside a Stepflow task. */
export function stepflowTask(context: Context = currentContext()): StepflowTask {
  const native = context.native;
  if (!isObject(native) || native.stepflow !== true) {
    throw new LongshoreError("LONGSHORE_CLOSED", "stepflowTask() was called for a task that did not come from a Stepflow orchestrator.");
  }
  const { stepflow: _, ...place } = native as unknown as StepflowNative;
  const ask = (name: Question, value: unknown) => context.ask(name, toJson(value));
  return {
    ...place,
    attempt: context.attempt,
    putBlob: async (data) => (await ask("putBlob", { data })) as string,
    getBlob: (id) => ask("getBlob", { id }),
    submitRun: async (request) => (await ask("submitRun", request)) as unknown as RunStatus,
    getRun: async (runId, options = {}) => (await ask("getRun", { ...options, runId })) as unknown as RunStatus,
    evaluate: (request) => ask("evaluate", request),
  };
}

export function nativeOf(place: StepflowPlace): Json {
  return { stepflow: true, ...place } satisfies StepflowNative as unknown as JsonObject;
}
