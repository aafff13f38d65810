// One attempt of a node as an assignment: accepts it, sends heartbeats, runs its batches and reports its results and its end. README.md of
// this protocol describes the life of a run on the wire.

import { randomUUID } from "node:crypto";
import type { Bus } from "../../../core/bus/bus.ts";
import { pause } from "../../../core/clock.ts";
import type { Context, ContextIds, StepPart } from "../../../core/context.ts";
import { LongshoreError, refusal } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { validate } from "../../../core/schema/schema.ts";
import type { Task } from "../../../core/task.ts";
import type {
  Assignment,
  BeatAnswer,
  Call,
  Control,
  HoldTerms,
  Outcome,
  PartReader,
  ReportAnswer,
  TransportHost,
} from "../../../runner/transport.ts";
import type { ArtifactStore, Attempt } from "../wire/artifacts/artifacts.ts";
import { dedupIds } from "../wire/hash.ts";
import { type ActiveRun, type Envelope, nodeKey, statusTopic, type TaskStart } from "../wire/shapes.ts";
import { BatchWriter } from "./batch-writer.ts";
import { drive, handedBack, type StreamWork } from "./drive.ts";
import { AttemptEvents } from "./events.ts";
import { jsonObject } from "./generate.ts";
import { metricsOf } from "./handler.ts";
import { type WorkerLog, workerLog } from "./log.ts";
import type { WorkerSettings } from "./options.ts";
import { failureEvent } from "./outcome.ts";
import { partReader } from "./part-reader.ts";
import { makeRunContext } from "./run-context.ts";
import { RunFailed } from "./run-failure.ts";
import { RunOutput } from "./run-output.ts";
import { isStreamTask } from "./stream-task.ts";

/** Dependencies that all runs of one worker share. */
export interface RunSurroundings {
  readonly settings: WorkerSettings;
  readonly host: TransportHost;
  readonly bus: Bus;
  readonly artifacts: ArtifactStore;
}

export class FlowkitRun implements Assignment {
  readonly ids: ContextIds;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly worker: string;
  readonly hold: HoldTerms;
  readonly native: Json;
  readonly active: ActiveRun;
  readonly #around: RunSurroundings;
  readonly #start: TaskStart;
  readonly #attempt: Attempt;
  readonly #events: AttemptEvents;
  readonly #log: WorkerLog;
  /** The id of the document with the run's state. Undefined when the next process of this worker could not find the document. */
  readonly #stateId: string | undefined;
  #control: Control | undefined;
  #cancel: { readonly reason: string; readonly deadlineMs: number | null } | undefined;
  #artifactsRef: JsonObject | null = null;
  #failure: RunFailed | undefined;
  /** True for a batch handler, whose output is its final metrics. */
  #streamed = false;
  /** True for an ordinary task that has emitted parts. */
  #emitted = false;
  #reported = false;
  /** Resolves when the run has ended and its end was reported. */
  over: Promise<void> = Promise.resolve();

  constructor(envelope: Envelope, start: TaskStart, around: RunSurroundings, stateId: string | undefined) {
    const { task_id, node_id, attempt_epoch, step_type } = envelope;
    const { settings, host, bus } = around;
    const { workerId, leaseTtlMs, heartbeatMs } = settings;
    const key = nodeKey(task_id, node_id);
    this.#around = around;
    this.#start = start;
    this.#stateId = stateId;
    this.#attempt = { taskId: task_id, nodeId: node_id, epoch: attempt_epoch, workerId };
    this.ids = { runId: task_id, stepId: node_id, taskId: key, grantId: `${key}:${attempt_epoch}` };
    this.attempt = Math.max(1, attempt_epoch);
    this.idempotencyKey = key;
    this.worker = workerId;
    this.hold = { termMs: leaseTtlMs, everyMs: heartbeatMs };
    const leaseId = randomUUID();
    const { input_ref, batching, cancel_token } = start;
    this.native = { task_id, node_id, attempt_epoch, step_type, worker_id: workerId, lease_id: leaseId, input_ref, batching };
    this.active = {
      task_id,
      node_id,
      step_type,
      attempt_epoch,
      lease_id: leaseId,
      cancel_token,
      started_at_ms: host.clock.now(),
      state: "running",
      checkpoint: {},
    };
    const topic = statusTopic(settings.topics, step_type);
    const { clock } = host;
    this.#events = new AttemptEvents({ bus, clock, topic, key: this.active, role: step_type, workerId, leaseId, leaseTtlMs, heartbeatMs });
    const bound = { role: "worker", worker_id: workerId, version: settings.workerVersion, task_id, node_id, attempt_epoch, step_type };
    this.#log = workerLog(settings.log, clock, bound);
  }

  get key(): string {
    return this.idempotencyKey;
  }

  get cancelling(): boolean {
    return this.#cancel !== undefined;
  }

  /** Reports that this worker has accepted the run. Throws when the report cannot be sent; then the worker must not run it. */
  async accept(): Promise<void> {
    await this.#saveState(this.active);
    await this.#events.send([this.#events.accepted(), this.#events.heartbeat()]);
    this.#log("info", "worker.send.accepted", this.#leaseFields());
  }

  /** Cancels the run; the handler has until the deadline. */
  cancel(reason: string, deadlineMs: number | null): void {
    if (this.#cancel !== undefined) return;
    this.#cancel = { reason: reason === "" ? "cancelled" : reason, deadlineMs };
    this.#log("info", "worker.run.cancelling", { reason, deadline: deadlineMs });
    this.#keepCancelling();
    this.#stop();
  }

  begin(control: Control): void {
    this.#control = control;
    this.over = new Promise((resolve) => {
      control.over.addEventListener("abort", () => void this.#end().finally(resolve), { once: true });
    });
    if (this.#cancel !== undefined) this.#stop();
    void this.#watchFlags(control.over);
  }

  resolve(tasks: ReadonlyMap<string, Task>): Call {
    const { step_type } = this.active;
    const found = tasks.get(step_type);
    if (found === undefined) throw refusal("LONGSHORE_NO_HANDLER", "handler not registered", "step_type");
    if (isStreamTask(found)) return this.#streamCall(found, found.stream);
    const { input_inline, input_ref } = this.#start;
    // With an adapter, an ordinary task is called once for each batch.
    if (hasAdapter(input_inline)) return this.#streamCall(found, { kind: "handler", handler: perBatch(found) });
    return { task: found, input: input_inline ?? input_ref ?? {} };
  }

  async beat(): Promise<BeatAnswer> {
    await this.#events.send([this.#events.heartbeat()]);
    this.#log("debug", "worker.send.hb", this.#leaseFields());
    return { verdict: "ok" };
  }

  /** Parts that an ordinary task emits are reported as batches. */
  async emit(parts: readonly StepPart[]): Promise<void> {
    const { artifacts } = this.#around;
    const batches = parts.map(({ uid, value }) => {
      const meta = jsonObject(metricsOf(value));
      return { uid, meta, json: this.#events.batchOk(uid, JSON.stringify(meta)) };
    });
    if (!(await artifacts.putPartials(this.#attempt, batches))) throw takenOver();
    if (artifacts.tells !== true) await this.#events.send(batches.map(({ json }) => json.bytes));
    this.#emitted = true;
  }

  receive(stepId: string): PartReader {
    const { artifacts, settings } = this.#around;
    const { pollMs, backoffMaxMs } = settings.argDefaults;
    return partReader((signal) => artifacts.read(this.#attempt, [stepId], { pollMs, backoffMaxMs, eofOnTaskDone: true, signal }));
  }

  async report(outcome: Outcome): Promise<ReportAnswer> {
    const answer = outcome.kind === "done" ? await this.#reportDone(outcome.output) : await this.#reportEnd(outcome);
    this.#reported = true;
    await this.#saveState(null);
    return answer;
  }

  async #reportDone(output: Json): Promise<ReportAnswer> {
    const { artifacts } = this.#around;
    const events: (string | Uint8Array)[] = [];
    let final: JsonObject;
    if (this.#streamed) final = output as JsonObject;
    // The task has sent its batches; the output is the summary.
    else if (this.#emitted) final = jsonObject(metricsOf(output));
    else {
      // As with the default handler of the reference, the output is one batch, whose uid is a hash of the input.
      const metrics = jsonObject(metricsOf(output));
      const { input_ref, input_inline } = this.#start;
      const uid = dedupIds.payload({ input_ref: input_ref ?? {}, input_inline: input_inline ?? {} });
      if (!(await artifacts.putPartials(this.#attempt, [{ uid, meta: metrics }]))) return { verdict: "stale" };
      if (artifacts.tells !== true) events.push(this.#events.batchOk(uid, JSON.stringify(metrics)).bytes);
      final = {};
    }
    if (!(await artifacts.complete(this.#attempt, final))) return { verdict: "stale" };
    events.push(this.#events.done(final, this.#artifactsRef, this.#streamed ? undefined : output));
    await this.#events.send(events);
    return { verdict: "ok", acknowledged: false };
  }

  async #reportEnd(outcome: Exclude<Outcome, { kind: "done" }>): Promise<ReportAnswer> {
    const event = failureEvent(outcome, {
      failure: this.#failure,
      cancelReason: this.#cancel?.reason,
      classify: this.#around.settings.classifyError,
    });
    if (event.kind === "cancelled") await this.#events.send([this.#events.cancelled(event.reason)]);
    else await this.#events.send([this.#events.failed(event.reason, event.permanent, event.error)]);
    if (event.kind === "cancelled" && event.reason === "shutdown") this.#log("info", "worker.shutdown.preserve_state");
    return { verdict: event.kind === "cancelled" ? "cancel" : "ok", acknowledged: false };
  }

  /** The same task with a handler that processes batches. */
  #streamCall(found: Task, work: StreamWork): Call {
    this.#streamed = true;
    const handle = (_input: unknown, context: Context) => this.#drive(work, context);
    return { task: { ...found, handle, input: undefined, output: undefined }, input: undefined };
  }

  async #drive(work: StreamWork, context: Context): Promise<JsonObject> {
    const { settings, host, artifacts } = this.#around;
    const { taskId, nodeId, epoch, workerId } = this.#attempt;
    const { signal } = context;
    const writer = new BatchWriter({
      sink: {
        keep: (parts) => artifacts.putPartials(this.#attempt, parts),
        tell: (events) => this.#events.send(events),
        finish: (parts) => artifacts.finish(this.#attempt, parts),
      },
      clock: host.clock,
      signal,
      failing: host.failing,
      working: host.working,
      lost: () => this.#lose(),
    });
    const { ctx, final, cleanup } = makeRunContext(context, {
      taskId,
      nodeId,
      attemptEpoch: epoch,
      workerId,
      clock: host.clock,
      cancel: () => this.#cancel,
      keepPartial: async (uid, meta) => {
        if (!(await artifacts.putPartials(this.#attempt, [{ uid, meta: jsonObject(meta) }]))) this.#lose();
      },
    });
    const { input_ref: inputRef, input_inline: inputInline, dead_letters = [] } = this.#start;
    const reading = untilDraining(signal, host.draining);
    try {
      const { metrics, artifactsRef } = await drive({
        work,
        info: { task_id: taskId, node_id: nodeId, attempt_epoch: epoch, worker_id: workerId, role: this.active.step_type },
        inputRef,
        inputInline,
        deadLetters: new Set(dead_letters),
        adapters: settings.adapters,
        defaults: settings.argDefaults,
        upstream: {
          taskId,
          signal: reading.signal,
          read: (nodes, options) => artifacts.read(this.#attempt, nodes, { ...options, signal: reading.signal }),
        },
        out: new RunOutput(writer, this.#events, artifacts.tells === true),
        ctx,
        draining: () => host.draining.aborted,
        log: this.#log,
      });
      this.#artifactsRef = artifactsRef;
      return { ...jsonObject(final()), ...metrics };
    } catch (error) {
      if (error instanceof RunFailed) this.#failure = error;
      throw error;
    } finally {
      reading.over();
      await cleanup();
    }
  }

  /** A later attempt has taken over. */
  #lose(): void {
    this.#control?.stop(takenOver());
  }

  #stop(): void {
    if (this.#cancel === undefined) return;
    const { reason, deadlineMs } = this.#cancel;
    const graceMs = deadlineMs === null ? undefined : Math.max(0, deadlineMs - this.#around.host.clock.now());
    this.#control?.stop(new LongshoreError("LONGSHORE_CANCELLED", reason), graceMs);
  }

  /**
   * Reports `cancelled` if there was no report, because the hold was lost or the report failed. The coordinator ignores this when a later
   * attempt has begun.
   */
  async #end(): Promise<void> {
    if (this.#reported) return;
    try {
      await this.#events.send([this.#events.cancelled("lease_lost")]);
      await this.#saveState(null);
    } catch {
      // The coordinator notices the expired lease, and this worker finds its state at its next start.
    }
  }

  /** Reads the coordinator's cancel flags, in case its signals do not arrive. */
  async #watchFlags(over: AbortSignal): Promise<void> {
    const { settings, host, artifacts } = this.#around;
    const { taskId, nodeId } = this.#attempt;
    while (!over.aborted && this.#cancel === undefined && settings.cancelPollMs > 0) {
      await pause(host.clock, settings.cancelPollMs, over);
      if (over.aborted) return;
      try {
        if (await artifacts.cancelled(taskId, nodeId)) this.cancel("db_flag", null);
        else if (await this.#isOvertaken()) return this.#lose();
        host.working("cancel flags");
      } catch (error) {
        host.failing("cancel flags", error);
      }
    }
  }

  /**
   * Returns whether a later attempt has begun. A coordinator that shares a MongoDB with its workers sends no stop signal for an ended
   * attempt.
   */
  async #isOvertaken(): Promise<boolean> {
    const { artifacts } = this.#around;
    const { taskId, nodeId, epoch } = this.#attempt;
    return artifacts.tells !== true && ((await artifacts.epochOf(taskId, nodeId)) ?? 0) > epoch;
  }

  #keepCancelling(): void {
    this.#saveState({ ...this.active, state: "cancelling" }).catch((error) => this.#around.host.failing("worker state", error));
  }

  async #saveState(run: ActiveRun | null): Promise<void> {
    if (this.#stateId !== undefined) await this.#around.artifacts.saveState(this.#stateId, run);
  }

  #leaseFields(): { readonly [field: string]: unknown } {
    const { clock } = this.#around.host;
    return { epoch: this.#attempt.epoch, lease_id: this.active.lease_id, deadline: clock.now() + this.hold.termMs };
  }
}

/** A signal that ends the wait for the next batch when the worker drains. Batches that were read are still processed. */
function untilDraining(signal: AbortSignal, draining: AbortSignal): { readonly signal: AbortSignal; readonly over: () => void } {
  const ending = new AbortController();
  const end = () => ending.abort(handedBack());
  if (draining.aborted) end();
  else draining.addEventListener("abort", end, { once: true });
  return { signal: AbortSignal.any([signal, ending.signal]), over: () => draining.removeEventListener("abort", end) };
}

function takenOver(): LongshoreError {
  return new LongshoreError("LONGSHORE_LEASE_LOST", "A later attempt of this node has taken over.");
}

function hasAdapter(inline: JsonObject | null): boolean {
  return isObject(inline) && typeof inline.input_adapter === "string" && inline.input_adapter !== "";
}

/** An ordinary task as a batch handler: its schemas apply to each batch. */
function perBatch(found: Task) {
  return {
    processBatch: async (batch: { readonly payload: JsonObject }, ctx: Context): Promise<unknown> => {
      const input = found.input === undefined ? batch.payload : await validate(found.input, batch.payload, "input");
      const value = await found.handle(input, ctx);
      return metricsOf(found.output === undefined ? value : await validate(found.output, value, "output"));
    },
  };
}
