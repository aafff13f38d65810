// What a running handler can read and do besides its input. The same object is the handler's second argument and, for code that cannot
// receive an argument, the result of `currentContext()`.
//
// Cancellation: `signal` aborts when the work is not wanted any more or this worker has lost it. The `reason` is a LongshoreError with one
// of these codes: LONGSHORE_CANCELLED (the run was cancelled), LONGSHORE_LEASE_LOST (another worker may run the task now),
// LONGSHORE_DEADLINE (the task's timeout has passed), LONGSHORE_SHUTDOWN (this worker is stopping). Pass the signal to every function that
// accepts one. A handler that ignores the signal is abandoned after a grace period, and its slot is free for other work.

import { AsyncLocalStorage } from "node:async_hooks";
import { findCallingRun } from "./calling-run.ts";
import type { Duration } from "./duration.ts";
import { LongshoreError } from "./errors.ts";
import type { Json } from "./json/json.ts";
import type { SpanIds } from "./trace.ts";

/** The stream that a log line belongs to. */
export type OutputStream = "stdout" | "stderr";

/** The ids of this piece of work. They are opaque texts: the orchestrator decides their form. */
export interface ContextIds {
  readonly runId: string;
  /** The step of the definition, such as `build`. */
  readonly stepId: string;
  /** One activation of that step; stays the same over attempts. */
  readonly taskId: string;
  /** This delivery of the task; differs each time the task is delivered again. */
  readonly grantId: string;
}

/** Content-addressed bytes that are too large to travel inside inputs and outputs. */
export interface Blobs {
  /** Stores the bytes and returns their id. The same bytes have the same id. */
  put(bytes: Uint8Array | string): Promise<string>;
  /** Rejects with LONGSHORE_NOT_FOUND when no such blob is stored. */
  get(id: string): Promise<Uint8Array>;
}

/** A part of a step's output, which the step has emitted before its end. */
export interface StepPart {
  readonly uid: string;
  readonly value: Json;
}

/** What a running handler can read and do besides its input: its second argument. */
export interface Context {
  /** The name of the task being run. */
  readonly task: string;
  readonly signal: AbortSignal;
  /** 1 on the first attempt. Deferring does not raise it. */
  readonly attempt: number;
  readonly ids: ContextIds;
  /** The same text for every attempt of this task, and different for every other task: pass it to services that deduplicate. */
  readonly idempotencyKey: string;
  /** The span of this call, when it is traced: pass it to the services that the handler calls. */
  readonly trace: SpanIds | undefined;
  /** Outputs of the steps that this one directly depends on, by step id. Empty when the protocol does not send them. */
  readonly upstream: { readonly [stepId: string]: unknown };
  /** How often this attempt has been deferred so far. */
  readonly deferrals: number;
  /** The output that the last `defer` of this attempt stored for this call. */
  readonly deferred: Json | undefined;
  readonly blobs: Blobs;
  /** The orchestrator's own data about this work; the entry point of that protocol has functions that read it. */
  readonly native: Json | undefined;
  /** Adds to the task's log: a line of text, or fields that are written as one line of JSON. Never throws and never waits. */
  log(entry: string | { readonly [field: string]: unknown }, stream?: OutputStream): void;
  /** Reports progress. Only the newest value matters; earlier values may never be sent. */
  progress(value: unknown): void;
  /**
   * Emits a part of the output before the task ends. Other steps can start with the first part and read the others as they arrive. The part
   * is durable when the promise resolves, in the order of the calls. A second call with the same `uid`, also in a later attempt, replaces
   * the value of that part. The default `uid` is the number of the call: right for a handler that emits the same parts in the same order in
   * every attempt. The calls need not be awaited: the task completes after all its parts are stored, and fails when one is lost. Where the
   * protocol does not support parts, the value is reported as progress.
   */
  emit(value: unknown, options?: { readonly uid?: string }): Promise<void>;
  /**
   * The parts of another step of this run as they are emitted, oldest first, from the beginning in each attempt. Ends when that step ends;
   * throws LONGSHORE_TASK_FAILED when the step did not succeed, and LONGSHORE_BAD_CONFIG where the protocol does not support parts.
   */
  parts(stepId: string, options?: { readonly signal?: AbortSignal }): AsyncIterable<StepPart>;
  /**
   * Sets a property of the result that only this orchestrator has. The entry point of its protocol has a function for each such property.
   */
  amend(name: string, value: Json): void;
  /**
   * Makes a call that only this orchestrator has. The entry point of its protocol has a function for each such call. Rejects with
   * LONGSHORE_BAD_CONFIG when the protocol has no call of this name.
   */
  ask(name: string, value: Json): Promise<Json>;
  /**
   * Renews the lease now. The worker renews it automatically, so this is optional. Rejects with the signal's reason once the lease is lost.
   */
  heartbeat(): Promise<void>;
  /** `return ctx.defer("5m")` ends this call and requests another call later; it does not use up an attempt. */
  defer(delay: Duration, output?: unknown): Deferral;
}

/** The value of `ctx.defer()`. It has an effect only when the handler returns it. */
export interface Deferral {
  readonly "longshore.deferral": true;
  readonly delayMs: number;
  readonly output: unknown;
}

export function isDeferral(value: unknown): value is Deferral {
  return typeof value === "object" && value !== null && (value as { "longshore.deferral"?: unknown })["longshore.deferral"] === true;
}

/** The result of a call as a value: for handlers that pass on, for example, the result object of another SDK. */
export interface Ending {
  readonly "longshore.ending": true;
  readonly outcome:
    | { readonly kind: "done"; readonly output: unknown }
    /** `output` is reported together with the failure. Protocols that cannot carry it drop it. */
    | { readonly kind: "failed"; readonly message: string; readonly retryable: boolean; readonly output?: unknown };
}

export function isEnding(value: unknown): value is Ending {
  return typeof value === "object" && value !== null && (value as { "longshore.ending"?: unknown })["longshore.ending"] === true;
}

// Each handler's context belongs to the asynchronous call chain that the handler started.
const running = new AsyncLocalStorage<Context>();

// A task without a run has an empty text.
findCallingRun(() => running.getStore()?.ids.runId || undefined);

/** The context of the handler that called this function, directly or indirectly. Throws LONGSHORE_CLOSED outside a handler. */
export function currentContext(): Context {
  const context = running.getStore();
  if (context === undefined) {
    throw new LongshoreError(
      "LONGSHORE_CLOSED",
      "currentContext() was called outside a running handler; call it from code that a handler calls.",
    );
  }
  return context;
}

/** Runs `fn` so that `currentContext()` returns `context` in everything it calls. For the runner and for tests of handlers. */
export function withContext<Result>(context: Context, fn: () => Result): Result {
  return running.run(context, fn);
}
