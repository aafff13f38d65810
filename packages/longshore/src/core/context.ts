// What a running handler can read and do besides its input. The same object is the handler's second argument and, for code that
// cannot be handed an argument, the result of `currentContext()`.
//
// About cancellation: `signal` aborts when the work is no longer wanted or no longer ours, and its `reason` is a LongshoreError
// whose code is the reason: LONGSHORE_CANCELLED (the run was cancelled), LONGSHORE_LEASE_LOST (another worker may run the task now),
// LONGSHORE_DEADLINE (the task's timeout has passed), LONGSHORE_SHUTDOWN (this worker is stopping). Pass the signal on to whatever
// takes one; a handler that ignores it is abandoned after a grace period and its slot is given to other work.

import { AsyncLocalStorage } from "node:async_hooks";
import type { Duration } from "./duration.ts";
import { LongshoreError } from "./errors.ts";
import type { Json } from "./json/json.ts";
import type { SpanIds } from "./trace.ts";

/** The stream that a log line belongs to. */
export type OutputStream = "stdout" | "stderr";

/** Where this piece of work belongs. Texts are opaque: their form is the orchestrator's. */
export interface ContextIds {
  readonly runId: string;
  /** The step of the definition, such as `build`. */
  readonly stepId: string;
  /** One activation of that step; stays the same over attempts. */
  readonly taskId: string;
  /** This one hand-out of the task; differs whenever it is handed out again. */
  readonly grantId: string;
}

/** Content-addressed bytes that are too large to travel inside inputs and outputs. */
export interface Blobs {
  /** Stores the bytes and returns their id. The same bytes have the same id. */
  put(bytes: Uint8Array | string): Promise<string>;
  /** Rejects with LONGSHORE_NOT_FOUND when no such blob is kept. */
  get(id: string): Promise<Uint8Array>;
}

/** Something that a step has given before its end. */
export interface StepPart {
  readonly uid: string;
  readonly value: Json;
}

/** What a running handler can read and do besides its input: its second argument. */
export interface Context {
  /** The name of the task being run. */
  readonly task: string;
  readonly signal: AbortSignal;
  /** 1 on the first try. Deferring does not raise it. */
  readonly attempt: number;
  readonly ids: ContextIds;
  /** The same text for every attempt of this task, and for no other task: hand it to services that deduplicate. */
  readonly idempotencyKey: string;
  /** The span of this call, where it is traced: hand it on to what the handler calls. */
  readonly trace: SpanIds | undefined;
  /** Outputs of the steps that this one directly depends on, by step id; empty where the protocol does not carry them. */
  readonly upstream: { readonly [stepId: string]: unknown };
  /** How often this attempt has been deferred so far. */
  readonly deferrals: number;
  /** What the last `defer` of this attempt kept for this call. */
  readonly deferred: Json | undefined;
  readonly blobs: Blobs;
  /** The orchestrator's own data about this work; its protocol's entry of this package can read it. */
  readonly native: Json | undefined;
  /** Adds to the task's log: a line of text, or fields written as one line of JSON. Never throws and never waits. */
  log(entry: string | { readonly [field: string]: unknown }, stream?: OutputStream): void;
  /** Reports how far the work has come. Only the newest value matters; intermediate ones may never be sent. */
  progress(value: unknown): void;
  /**
   * Gives a part of the output before its end; other steps may begin with the first and read along. Durable when it resolves, in the
   * order of the calls. The same `uid` again is the same part, also in a later attempt, whose value replaces the earlier one. Without a
   * `uid` it is the number of the call, which is right for a handler that gives the same parts in the same order whenever it is tried.
   * Not every call has to be awaited: the task is not done before all its parts are, and fails when one is lost. Where the protocol
   * carries no parts, it is a progress.
   */
  emit(value: unknown, options?: { readonly uid?: string }): Promise<void>;
  /**
   * The parts of another step of this run as they come, oldest first, from the beginning in each attempt. Ends with that step; throws
   * LONGSHORE_TASK_FAILED when it did not succeed, and LONGSHORE_BAD_CONFIG where the protocol carries no parts.
   */
  parts(stepId: string, options?: { readonly signal?: AbortSignal }): AsyncIterable<StepPart>;
  /** Sets something about the result that only this orchestrator knows; its protocol's entry of this package offers it by name. */
  amend(name: string, value: Json): void;
  /**
   * Calls the orchestrator for something that only it can answer; its protocol's entry of this package offers it by name. Rejects with
   * LONGSHORE_BAD_CONFIG where the protocol has no such call.
   */
  ask(name: string, value: Json): Promise<Json>;
  /** Renews the hold now. Not needed for keeping it: that happens by itself. Rejects with the signal's reason once the hold is lost. */
  heartbeat(): Promise<void>;
  /** `return ctx.defer("5m")` ends this call and requests another one later; it spends no attempt. */
  defer(delay: Duration, output?: unknown): Deferral;
}

/** The value of `ctx.defer()`. It means something only when the handler returns it. */
export interface Deferral {
  readonly "longshore.deferral": true;
  readonly delayMs: number;
  readonly output: unknown;
}

export function isDeferral(value: unknown): value is Deferral {
  return typeof value === "object" && value !== null && (value as { "longshore.deferral"?: unknown })["longshore.deferral"] === true;
}

/** How a call ended, as a value: for handlers that carry the result of something else, such as another SDK's result object. */
export interface Ending {
  readonly "longshore.ending": true;
  readonly outcome:
    | { readonly kind: "done"; readonly output: unknown }
    /** `output` is what there is in spite of the failure; protocols without a place for it drop it. */
    | { readonly kind: "failed"; readonly message: string; readonly retryable: boolean; readonly output?: unknown };
}

export function isEnding(value: unknown): value is Ending {
  return typeof value === "object" && value !== null && (value as { "longshore.ending"?: unknown })["longshore.ending"] === true;
}

// Holds no state of its own: each handler's context lives in the asynchronous chain that the handler started.
const running = new AsyncLocalStorage<Context>();

/** The context of the handler that (directly or not) called this. Throws LONGSHORE_CLOSED outside any handler. */
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
