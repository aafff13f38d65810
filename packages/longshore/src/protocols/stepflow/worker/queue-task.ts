// One task of a queue as an assignment: claiming, heartbeats, reading the input, reporting the outcome. README.md of this protocol
// describes the life of a task on the wire.

import type { Clock } from "../../../core/clock.ts";
import type { ContextIds } from "../../../core/context.ts";
import { LongshoreError, refusal } from "../../../core/errors.ts";
import { isObject, type Json } from "../../../core/json/json.ts";
import type { Verdict } from "../../../core/verdict.ts";
import { GrpcCode } from "../../../net/grpc/status.ts";
import type { WorkTrace } from "../../../runner/telemetry.ts";
import type { Assignment, BeatAnswer, Call, Control, HoldTerms, Outcome, ReportAnswer, Slot } from "../../../runner/transport.ts";
import { replaceLarge, resolveBlobs } from "../wire/blob-refs.ts";
import { deferralError, takeDeferred } from "../wire/deferral.ts";
import { type ComponentExecuteRequest, type TaskAssignment, type TaskHeartbeatResponse, TaskStatus } from "../wire/messages.ts";
import { OrchestratorService } from "../wire/services.ts";
import { stableTaskId } from "../wire/task-id.ts";
import { Answers } from "./callbacks.ts";
import type { Components } from "./components.ts";
import { failureOfCall, hasCode } from "./grpc-failure.ts";
import type { Orchestrators } from "./orchestrators.ts";
import type { QueueSettings } from "./queue-options.ts";
import { SubRuns } from "./sub-runs.ts";
import { TaskBlobs } from "./task-blobs.ts";
import { nativeOf } from "./task-context.ts";
import { taskErrorOf } from "./task-error.ts";
import { TaskOrchestrator } from "./task-orchestrator.ts";
import { progressOf, type TaskProgress } from "./task-progress.ts";
import { workTrace } from "./work-trace.ts";

/** Dependencies that all tasks of one worker share. */
export interface TaskSurroundings {
  readonly settings: QueueSettings;
  readonly orchestrators: Orchestrators;
  readonly components: Components;
  readonly clock: Clock;
  /** The running tasks of this worker, by key. */
  readonly running: Map<string, QueueTask>;
  /** Equal for two deliveries of one task. */
  readonly keyOf: (assignment: TaskAssignment) => string;
  /** Used for tasks that do not name their orchestrator. */
  readonly orchestratorUrl: string | undefined;
}

/** The timeout of a heartbeat: after this time the next one is due. */
const beatTimeoutMs = 10_000;
/** The timeout of a report, whose outcome may be as large as a message. */
const reportTimeoutMs = 30_000;
/** Used when an orchestrator sets no interval. */
const heartbeatSecsDefault = 1;
/** Every server accepts messages of this size. When a larger message is refused, its size counts as the reason. */
const messageBytesUsual = 4 * 1024 * 1024 - 1024;
/** Spreads the heartbeats of tasks that began together. */
const heartbeatJitter = 0.2;

export class QueueTask implements Assignment {
  readonly ids: ContextIds;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly worker: string;
  readonly hold: HoldTerms;
  /** Only our servers take deferrals. */
  readonly defers: boolean;
  readonly deferrals: number;
  readonly deferred?: Json;
  readonly #taskId: string;
  readonly #key: string;
  readonly #execute: ComponentExecuteRequest;
  readonly #rootRunId: string | undefined;
  readonly #around: TaskSurroundings;
  readonly #home: TaskOrchestrator;
  /** Sent in heartbeats and reports. An orchestrator that is still recovering the run refuses them, and says so. */
  readonly #run: { readonly runId?: string };
  #pathParams: Readonly<Record<string, string>>;
  #trace: WorkTrace | undefined;
  #progress: TaskProgress | undefined;
  #cancelled = false;
  #answers: Answers | undefined;
  #replaced: { readonly outcome: Outcome; readonly output: Json } | undefined;
  #reports = 0;

  constructor(assignment: TaskAssignment, execute: ComponentExecuteRequest, around: TaskSurroundings) {
    const { taskId, context, heartbeatIntervalSecs } = assignment;
    const { observability, attempt } = execute;
    this.#taskId = taskId;
    this.#key = around.keyOf(assignment);
    this.#execute = execute;
    this.#around = around;
    const { params, deferred } = takeDeferred(execute.pathParams);
    this.#pathParams = params;
    this.deferrals = deferred?.deferrals ?? 0;
    // Null is the output of a deferral that has none.
    if (deferred !== undefined && deferred.output !== null) this.deferred = deferred.output;
    this.#rootRunId = context?.rootRunId || undefined;
    const runId = this.#rootRunId ?? observability?.runId;
    this.#run = runId === undefined ? {} : { runId };
    this.#home = new TaskOrchestrator(around.orchestrators, context?.orchestratorServiceUrl || around.orchestratorUrl || "", runId);
    this.attempt = Math.max(1, attempt);
    this.idempotencyKey = stableTaskId(taskId);
    this.defers = this.idempotencyKey !== taskId;
    // The reference reuses the id of a task for its next attempt.
    const grantId = this.idempotencyKey === taskId ? `${taskId}/${this.attempt}` : taskId;
    this.ids = { runId: observability?.runId ?? runId ?? "", stepId: observability?.stepId ?? "", taskId: this.idempotencyKey, grantId };
    this.worker = around.settings.workerId;
    const everyMs = (heartbeatIntervalSecs || heartbeatSecsDefault) * 1_000;
    // Only an orchestrator ends a hold. While none can be reached, the task is not lost: an orchestrator that recovers the run offers it
    // again, and the next heartbeat claims it there.
    this.hold = { termMs: Number.POSITIVE_INFINITY, everyMs, jitter: heartbeatJitter };
  }

  get native(): Json {
    const { componentId: component, observability } = this.#execute;
    const { runId, flowId, stepId } = observability ?? {};
    return nativeOf({ component, pathParams: this.#pathParams, ...known({ runId, rootRunId: this.#rootRunId, flowId, stepId }) });
  }

  get trace(): WorkTrace {
    const { componentId: component, observability = {} } = this.#execute;
    this.#trace ??= workTrace(observability, { component, attempt: this.attempt, kind: "consumer" });
    return this.#trace;
  }

  get blobs(): TaskBlobs {
    const url = this.#around.settings.blobUrl ?? this.#home.url;
    return new TaskBlobs(this.#around.orchestrators.at(url), url);
  }

  /**
   * Sends the first heartbeat. `ok` and `cancel` mean that the task is ours, other verdicts that it is not. Throws when no orchestrator
   * could answer.
   */
  async claim(signal: AbortSignal): Promise<Verdict> {
    const verdict = await this.#beat(signal);
    this.#cancelled = verdict === "cancel";
    return verdict;
  }

  begin(control: Control): void {
    if (this.#cancelled) control.stop(new LongshoreError("LONGSHORE_CANCELLED", "cancelled"));
  }

  resolve(): Call | Promise<Call> {
    const { componentId, input = null } = this.#execute;
    const found = this.#around.components.find(componentId);
    if (found === undefined) {
      const message = `The component ${JSON.stringify(componentId)} is not among those of this worker.`;
      throw refusal("LONGSHORE_NO_HANDLER", message, "component_id");
    }
    const { task, pathParams } = found;
    // With orchestrators before 0.13, the worker must parse the path.
    if (Object.keys(this.#pathParams).length === 0) this.#pathParams = pathParams;
    if (!mayHoldBlobs(input)) return { task, input };
    const { blobs } = this;
    return resolveBlobs(input, (id) => blobs.findJson(id)).then((resolved) => ({ task, input: resolved }));
  }

  /** Runs the task. Resolves when the slot is free again. */
  async runIn(slot: Slot): Promise<void> {
    this.#around.running.set(this.#key, this);
    await slot.run(this);
    this.#leave();
  }

  async beat(signal: AbortSignal): Promise<BeatAnswer> {
    const verdict = await this.#beat(signal);
    // Once a report is sent, only its reply counts: a heartbeat that arrives after the report finds no task any more.
    return { verdict: this.#reports > 0 ? "ok" : verdict };
  }

  /** Sent with the next heartbeat. */
  async progress(value: Json): Promise<void> {
    this.#progress = progressOf(value);
  }

  ask(name: string, value: Json, signal: AbortSignal): Promise<Json> {
    this.#answers ??= this.#makeAnswers(signal);
    return this.#answers.answer(name, value);
  }

  async report(outcome: Outcome, { signal }: { readonly signal: AbortSignal }): Promise<ReportAnswer> {
    const result = await this.#resultOf(outcome);
    this.#reports++;
    const request = { taskId: this.#taskId, ...result, ...this.#run };
    try {
      await this.#home.call(OrchestratorService.CompleteTask, request, { signal, timeoutMs: reportTimeoutMs });
      return { verdict: "ok" };
    } catch (error) {
      // After an earlier try, NOT_FOUND means that this try arrived and the task is done.
      if (hasCode(error, GrpcCode.NOT_FOUND)) return { verdict: this.#reports > 1 ? "again" : "gone" };
      throw unreported(`CompleteTask at ${this.#home.url}`, error, () => OrchestratorService.CompleteTask.request.encode(request).length);
    }
  }

  async #resultOf(outcome: Outcome) {
    if (outcome.kind === "failed") return { error: taskErrorOf(outcome) };
    if (outcome.kind === "deferred") return { error: deferralError({ delayMs: outcome.delayMs, output: outcome.output ?? null }) };
    const { blobThresholdBytes } = this.#around.settings;
    if (blobThresholdBytes === 0) return { response: { output: outcome.output } };
    if (this.#replaced?.outcome !== outcome) {
      const { blobs } = this;
      const output = await replaceLarge(outcome.output, blobThresholdBytes, (value) => blobs.putJson(value, "data"));
      this.#replaced = { outcome, output };
    }
    return { response: { output: this.#replaced.output } };
  }

  async #beat(signal: AbortSignal): Promise<Verdict> {
    const progress = this.#progress;
    const request = { taskId: this.#taskId, workerId: this.worker, ...progress, ...this.#run };
    try {
      const answer = await this.#home.call(OrchestratorService.TaskHeartbeat, request, { signal, timeoutMs: beatTimeoutMs });
      if (this.#progress === progress) this.#progress = undefined;
      const verdict = verdictOf(answer);
      return verdict === "busy" ? this.#lost(verdict) : verdict;
    } catch (error) {
      if (hasCode(error, GrpcCode.NOT_FOUND)) return this.#lost("gone");
      throw failureOfCall(`TaskHeartbeat at ${this.#home.url}`, error);
    }
  }

  /** The handler may continue for a while without heartbeats. The same task may be delivered again meanwhile. */
  #lost(verdict: Verdict): Verdict {
    this.#leave();
    return verdict;
  }

  #leave(): void {
    const { running } = this.#around;
    if (running.get(this.#key) === this) running.delete(this.#key);
  }

  #makeAnswers(signal: AbortSignal): Answers {
    const runs = new SubRuns(this.#home, this.#rootRunId, signal);
    return new Answers(
      {
        putJson: (data, type) => this.blobs.putJson(data, type),
        getJson: (id) => this.blobs.getJson(id),
        submitRun: (request) => runs.submit(request),
        getRun: (runId, options) => runs.get(runId, options),
      },
      { clock: this.#around.clock, signal, idempotencyKey: this.idempotencyKey },
    );
  }
}

/** ALREADY_CLAIMED is checked first, because should_abort is always set with it. */
function verdictOf({ status, shouldAbort }: TaskHeartbeatResponse): Verdict {
  if (status === TaskStatus.ALREADY_CLAIMED) return "busy";
  return shouldAbort ? "cancel" : "ok";
}

/** Most inputs contain no reference to a blob, so they need no promise. A false positive only causes a search without a result. */
function mayHoldBlobs(input: Json): boolean {
  if (typeof input !== "object" || input === null) return false;
  if (isObject(input) && "$blob" in input) return true;
  for (const value of Object.values(input)) if (mayHoldBlobs(value)) return true;
  return false;
}

/**
 * Converts the failure of a report. An outcome that the orchestrator will never accept becomes BAD_OUTPUT or LIMIT, so that a failure is
 * reported instead (see `Assignment.report`). An overloaded orchestrator answers as for a message that is too large, so the size decides.
 */
function unreported(what: string, error: unknown, bytes: () => number): LongshoreError {
  const failure = failureOfCall(what, error);
  if (failure.code === "LONGSHORE_BAD_INPUT") return new LongshoreError("LONGSHORE_BAD_OUTPUT", failure.message, { cause: error });
  if (failure.code !== "LONGSHORE_LIMIT" || bytes() > messageBytesUsual) return failure;
  return new LongshoreError("LONGSHORE_UNREACHABLE", failure.message, { cause: error });
}

/** Removes absent fields. */
function known<Name extends string>(fields: { readonly [name in Name]: string | undefined }): Record<string, string> {
  return Object.fromEntries(Object.entries<string | undefined>(fields).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >;
}
