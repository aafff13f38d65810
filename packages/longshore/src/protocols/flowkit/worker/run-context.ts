// The context of a batch handler: an ordinary task's context with FlowKit's additions. The additions have the names of the reference and
// those of JavaScript. Each run has its own context, and registered resources are cleaned up when the run ends.

import type { Clock } from "../../../core/clock.ts";
import type { Context } from "../../../core/context.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { untilAborted } from "../../../core/until-aborted.ts";
import { Cleanup } from "./cleanup.ts";
import { runSubprocess, type SubprocessOptions } from "./subprocess.ts";

/** The state of the run that the context shows. */
export interface RunState {
  readonly taskId: string;
  readonly nodeId: string;
  readonly attemptEpoch: number;
  readonly workerId: string;
  readonly clock: Clock;
  /** The reason and deadline of the cancel; undefined while the run is not being cancelled. */
  cancel(): { readonly reason: string; readonly deadlineMs: number | null } | undefined;
  /** Stores a partial artifact besides those of the batches. */
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
  /** Durable when the promise resolves. */
  upsert_partial(batch_uid: string, meta: object): Promise<JsonObject>;
  upsertPartial(batchUid: string, meta: object): Promise<JsonObject>;
  /** Adds final metrics. The node itself is marked complete at its end. */
  mark_complete(meta: object, ref?: JsonObject | null): Promise<JsonObject>;
  markComplete(meta: object, ref?: JsonObject | null): Promise<JsonObject>;
}

/** The context of a FlowKit handler: the usual context, and the names of the reference in both notations. */
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
  /** Values that the handler keeps during this run. */
  readonly kv: { [key: string]: unknown };
  /** The signal under the guide's name, with `is_set()`. */
  readonly cancel_flag: { is_set(): boolean; readonly signal: AbortSignal };
  cancelled(): boolean;
  readonly cancel_reason: string | null;
  readonly cancelReason: string | null;
  readonly cancel_deadline_ts_ms: number | null;
  readonly cancelDeadlineMs: number | null;
  /** The time until the deadline of the cancel, never negative; null without a deadline. */
  remaining_ms(): number | null;
  remainingMs(): number | null;
  /** Rejects with the signal's reason once the run is being cancelled. */
  raise_if_cancelled(): Promise<void>;
  throwIfCancelled(): void;
  /** Waits for `work`, but rejects when the run is cancelled. */
  cancellable<Value>(work: PromiseLike<Value> | ((signal: AbortSignal) => PromiseLike<Value>)): Promise<Value>;
  /** Returns the exit code. A cancel signals the process group, and kills it after the grace period. */
  run_subprocess(command: readonly string[], options?: SubprocessOptions): Promise<number>;
  runSubprocess(command: readonly string[], options?: SubprocessOptions): Promise<number>;
  /** The process is ended with the run, after a grace period of one second. */
  register_subprocess(child: { readonly pid?: number | undefined; kill(signal?: NodeJS.Signals): boolean }): void;
  /** The file or folder is removed with the run. */
  register_temp_path(path: string): void;
  /** Called at the end of the run, in reverse order. */
  on_cleanup(fn: () => unknown): void;
  onCleanup(fn: () => unknown): void;
}

/** The context of a run, the metrics of `mark_complete`, and the cleanup to call at the end. */
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
  // Some members of the context are getters and must stay getters.
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

/** Reasons that end a run without a cancel by the coordinator. */
function endReason(signal: AbortSignal): string | null {
  const { code } = (signal.reason ?? {}) as { code?: unknown };
  if (code === "LONGSHORE_LEASE_LOST") return "lease_lost";
  return code === "LONGSHORE_SHUTDOWN" ? "shutdown" : null;
}
