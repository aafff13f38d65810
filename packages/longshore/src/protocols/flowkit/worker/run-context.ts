// What a handler of batches may read and do while it runs: everything of an ordinary task's context, and what FlowKit's handlers have
// besides, under the names of the reference and under those of JavaScript. One for each run; what it was given to clean up is cleaned up at
// its end.

import type { Clock } from "../../../core/clock.ts";
import type { Context } from "../../../core/context.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { untilAborted } from "../../../core/until-aborted.ts";
import { Cleanup } from "./cleanup.ts";
import { runSubprocess, type SubprocessOptions } from "./subprocess.ts";

/** What the run itself knows and the context shows. */
export interface RunState {
  readonly taskId: string;
  readonly nodeId: string;
  readonly attemptEpoch: number;
  readonly workerId: string;
  readonly clock: Clock;
  /** Why and until when it is being cancelled, once it is. */
  cancel(): { readonly reason: string; readonly deadlineMs: number | null } | undefined;
  /** Keeps a partial artifact beside those of the batches. */
  keepPartial(uid: string, meta: object): Promise<void>;
}

/** The worker's clock under the reference's names. */
export interface RunClock {
  now_dt(): Date;
  now_ms(): number;
  mono_ms(): number;
  sleep_ms(ms: number): Promise<void>;
}

/** Writes the artifacts of the running node. */
export interface RunArtifacts {
  /** Durable when it resolves. */
  upsert_partial(batch_uid: string, meta: object): Promise<JsonObject>;
  upsertPartial(batchUid: string, meta: object): Promise<JsonObject>;
  /** Further final metrics; the node is marked complete when it is, at its end. */
  mark_complete(meta: object, ref?: JsonObject | null): Promise<JsonObject>;
  markComplete(meta: object, ref?: JsonObject | null): Promise<JsonObject>;
}

/** The context of a FlowKit handler: the usual one, and the names of the reference in both spellings. */
export interface RunContext extends Context {
  readonly task_id: string;
  readonly taskId: string;
  readonly node_id: string;
  readonly nodeId: string;
  readonly attempt_epoch: number;
  readonly attemptEpoch: number;
  readonly worker_id: string;
  readonly workerId: string;
  readonly clock: RunClock;
  readonly artifacts: RunArtifacts;
  /** A place for values that the handler needs again in this run. */
  readonly kv: { [key: string]: unknown };
  /** The signal under the guide's name, with `is_set()`. */
  readonly cancel_flag: { is_set(): boolean; readonly signal: AbortSignal };
  cancelled(): boolean;
  readonly cancel_reason: string | null;
  readonly cancelReason: string | null;
  readonly cancel_deadline_ts_ms: number | null;
  readonly cancelDeadlineMs: number | null;
  /** Until the deadline of the cancel; null without one, never negative. */
  remaining_ms(): number | null;
  remainingMs(): number | null;
  /** Rejects with the signal's reason once the run is being cancelled. */
  raise_if_cancelled(): Promise<void>;
  throwIfCancelled(): void;
  /** Whatever it is about to wait for, but not beyond the cancel. */
  cancellable<Value>(work: PromiseLike<Value> | ((signal: AbortSignal) => PromiseLike<Value>)): Promise<Value>;
  /** Its exit code. On a cancel its process group gets a signal, and after the grace it is killed. */
  run_subprocess(command: readonly string[], options?: SubprocessOptions): Promise<number>;
  runSubprocess(command: readonly string[], options?: SubprocessOptions): Promise<number>;
  /** Ended with the run, after one second's grace. */
  register_subprocess(child: { readonly pid?: number | undefined; kill(signal?: NodeJS.Signals): boolean }): void;
  /** A file or folder that is removed with the run. */
  register_temp_path(path: string): void;
  /** Called at the end of the run, the last one first. */
  on_cleanup(fn: () => unknown): void;
  onCleanup(fn: () => unknown): void;
}

/** The context of a run, what `mark_complete` was given, and what must be called at the end. */
export function makeRunContext(
  context: Context,
  state: RunState,
): { readonly ctx: RunContext; readonly final: () => object; readonly cleanup: () => Promise<void> } {
  const cleanup = new Cleanup(state.clock);
  const { taskId, nodeId, attemptEpoch, workerId } = state;
  let final: object = {};
  const upsert = async (uid: string, meta: object) => {
    if (typeof uid !== "string" || uid === "") throw new TypeError("upsert_partial needs a batch_uid");
    await state.keepPartial(uid, meta);
    return { task_id: taskId, node_id: nodeId, batch_uid: uid };
  };
  const complete = async (meta: object, ref?: JsonObject | null) => {
    final = { ...final, ...meta };
    return ref ?? { task_id: taskId, node_id: nodeId };
  };
  const cancelled = () => context.signal.aborted;
  const cancelReason = () => state.cancel()?.reason ?? endReason(context.signal);
  const throwIfCancelled = () => context.signal.throwIfAborted();
  const remaining = () => {
    const deadlineMs = state.cancel()?.deadlineMs ?? null;
    return deadlineMs === null ? null : Math.max(0, deadlineMs - state.clock.now());
  };
  const subprocess = (command: readonly string[], options: SubprocessOptions = {}) =>
    runSubprocess(command, { ...options, clock: state.clock, signal: context.signal });
  const own = {
    task_id: taskId,
    taskId,
    node_id: nodeId,
    nodeId,
    attempt_epoch: attemptEpoch,
    attemptEpoch,
    worker_id: workerId,
    workerId,
    clock: runClock(state.clock, context.signal),
    artifacts: { upsert_partial: upsert, upsertPartial: upsert, mark_complete: complete, markComplete: complete },
    kv: {},
    cancel_flag: { is_set: cancelled, signal: context.signal },
    cancelled,
    get cancel_reason() {
      return cancelReason();
    },
    get cancelReason() {
      return cancelReason();
    },
    get cancel_deadline_ts_ms() {
      return state.cancel()?.deadlineMs ?? null;
    },
    get cancelDeadlineMs() {
      return state.cancel()?.deadlineMs ?? null;
    },
    remaining_ms: remaining,
    remainingMs: remaining,
    raise_if_cancelled: async () => throwIfCancelled(),
    throwIfCancelled,
    cancellable: <Value>(work: PromiseLike<Value> | ((signal: AbortSignal) => PromiseLike<Value>)) =>
      untilAborted(typeof work === "function" ? work(context.signal) : work, context.signal),
    run_subprocess: subprocess,
    runSubprocess: subprocess,
    register_subprocess: (child: Parameters<RunContext["register_subprocess"]>[0]) => cleanup.subprocess(child),
    register_temp_path: (path: string) => cleanup.path(path),
    on_cleanup: (fn: () => unknown) => cleanup.call(fn),
    onCleanup: (fn: () => unknown) => cleanup.call(fn),
  };
  // The context's own members are getters in part, which must stay so.
  const ctx = Object.defineProperties(Object.create(null), {
    ...Object.getOwnPropertyDescriptors(context),
    ...Object.getOwnPropertyDescriptors(own),
  }) as RunContext;
  return { ctx, final: () => final, cleanup: () => cleanup.run() };
}

function runClock(clock: Clock, signal: AbortSignal): RunClock {
  return {
    now_dt: () => new Date(clock.now()),
    now_ms: () => clock.now(),
    mono_ms: () => performance.now(),
    sleep_ms: (ms) =>
      untilAborted(
        new Promise<void>((resolve) => {
          clock.at(clock.now() + ms, resolve);
        }),
        signal,
      ),
  };
}

/** The reasons that end a run without an order of the coordinator. */
function endReason(signal: AbortSignal): string | null {
  const { code } = (signal.reason ?? {}) as { code?: unknown };
  if (code === "LONGSHORE_LEASE_LOST") return "lease_lost";
  return code === "LONGSHORE_SHUTDOWN" ? "shutdown" : null;
}
