// One polled task as an assignment: how its lease is extended, how a cancel is noticed, how its result is reported.

import type { Clock } from "../../../core/clock.ts";
import type { ContextIds } from "../../../core/context.ts";
import { isRefused, refusal } from "../../../core/errors.ts";
import { type Json, type JsonObject, parseOrUndefined } from "../../../core/json/json.ts";
import type { Task } from "../../../core/task.ts";
import type { TransportEvent } from "../../../runner/events.ts";
import type { Assignment, BeatAnswer, Call, HoldTerms, LogEntry, Outcome, ReportAnswer } from "../../../runner/transport.ts";
import { updateAnswer, verdictOfStatus } from "../wire/codes.ts";
import { isOfType, type PolledTask } from "../wire/shapes.ts";
import { type Answer, type Client, unexpected } from "./client.ts";
import type { WorkerConfig } from "./config.ts";
import type { Outbox } from "./outbox.ts";
import { type Amendments, isShutdown, resultOf } from "./result.ts";
import { amend } from "./task-context.ts";
import type { Updates } from "./update.ts";

/** What all tasks of one worker share. */
export interface WorkSurroundings {
  readonly client: Client;
  readonly updates: Updates;
  readonly outbox: Outbox | undefined;
  readonly clock: Clock;
  readonly config: WorkerConfig;
  /** Undefined: running tasks are not looked up. */
  readonly cancelPollMs: number | undefined;
  /** Returns whether a report should request the next task in its response. */
  readonly mayChain: () => boolean;
  readonly error: (message: string) => void;
  /** A task of another type came, which must not be run by this one's handler. */
  readonly misplaced: (tasks: readonly PolledTask[]) => Promise<void>;
  /** Called when an input was fetched from another server. */
  readonly fetched: (event: TransportEvent<"inputFetched">) => void;
}

/** Minimum interval: below it an extension would come too late, or flood the server. */
const leaseEveryMsMin = 1_000;
/**
 * Maximum size of a task's log that is sent with its result; more could make the server refuse the result. The oldest lines are dropped
 * first.
 */
const logCharsMax = 1_000_000;

export class PolledWork implements Assignment {
  readonly ids: ContextIds;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly worker: string;
  readonly native: Json;
  readonly deferrals: number;
  readonly deferred?: Json;
  readonly hold?: HoldTerms;
  readonly #task: PolledTask;
  readonly #around: WorkSurroundings;
  readonly #leaseEveryMs: number | undefined;
  readonly #amendments: Amendments = {};
  readonly #logs: LogEntry[] = [];
  #logChars = 0;
  #extendedMs: number;
  #looksUp: boolean;
  #reported: { readonly outcome: Outcome; readonly body: string } | undefined;

  constructor(task: PolledTask, around: WorkSurroundings) {
    this.#task = task;
    this.#around = around;
    const { taskId, workflowInstanceId, referenceTaskName, pollCount } = task;
    this.ids = { runId: workflowInstanceId, stepId: referenceTaskName, taskId, grantId: `${taskId}/${pollCount}` };
    this.attempt = task.retryCount + 1;
    // A retry is a new task on this wire; the workflow and the reference name stay.
    this.idempotencyKey = `${workflowInstanceId}/${referenceTaskName}`;
    this.worker = around.config.workerId;
    this.native = task as Json;
    this.deferrals = Math.max(0, pollCount - 1);
    if (pollCount > 1) this.deferred = task.outputData;
    this.#extendedMs = around.clock.now();
    this.#leaseEveryMs = around.config.leaseExtend ? leaseEveryMs(task.responseTimeoutSeconds) : undefined;
    this.#looksUp = around.cancelPollMs !== undefined;
    const everyMs = Math.min(this.#leaseEveryMs ?? Number.POSITIVE_INFINITY, around.cancelPollMs ?? Number.POSITIVE_INFINITY);
    // Only the server ends a hold, so the worker does not need to: the server ignores late results.
    if (everyMs !== Number.POSITIVE_INFINITY) this.hold = { termMs: Number.POSITIVE_INFINITY, everyMs };
  }

  resolve(tasks: ReadonlyMap<string, Task>): Call | Promise<Call> {
    const task = tasks.get(this.#around.config.task);
    const elsewhere = this.#task.externalInputPayloadStoragePath;
    if (task !== undefined && typeof elsewhere === "string" && elsewhere !== "") {
      return this.#fetch(elsewhere).then((input) => ({ task, input }));
    }
    if (task !== undefined) return { task, input: this.#task.inputData };
    throw refusal("LONGSHORE_NO_HANDLER", `No task is named "${this.#around.config.task}" here.`);
  }

  amend(name: string, value: Json): void {
    amend(this.#amendments, name, value);
  }

  async beat(signal: AbortSignal): Promise<BeatAnswer> {
    const { clock } = this.#around;
    if (this.#leaseEveryMs !== undefined && clock.now() - this.#extendedMs >= this.#leaseEveryMs) {
      const sentMs = clock.now();
      if (!(await this.#extend(signal))) return { verdict: "gone" };
      this.#extendedMs = sentMs;
    }
    return { verdict: await this.#look(signal) };
  }

  /** Lines are sent with the result. */
  async log(entries: readonly LogEntry[]): Promise<void> {
    for (const entry of entries) {
      this.#logs.push(entry);
      this.#logChars += entry.text.length;
    }
    while (this.#logChars > logCharsMax) this.#logChars -= (this.#logs.shift() as LogEntry).text.length;
  }

  async report(outcome: Outcome, options: { readonly wantNext: boolean; readonly signal: AbortSignal }): Promise<ReportAnswer> {
    const { updates, outbox, config, mayChain, misplaced } = this.#around;
    const body = this.#bodyOf(outcome);
    const ended = outcome.kind !== "deferred" && !isShutdown(outcome);
    try {
      const next = await updates.send(body, config.task, ended && options.wantNext && mayChain(), options.signal);
      await outbox?.drop(this.#task.taskId);
      if (next !== undefined && !isOfType(next, config.task)) {
        void misplaced([next]);
        return { verdict: "ok" };
      }
      return { verdict: "ok", ...(next === undefined ? {} : { next: new PolledWork(next, this.#around) }) };
    } catch (error) {
      // The result is stored after the first failure, because this process may be killed before the last try.
      if (!isShutdown(outcome) && !isRefused(error)) await outbox?.keep(this.#task.taskId, body);
      throw error;
    }
  }

  async undelivered(): Promise<void> {
    this.#around.outbox?.release(this.#task.taskId);
  }

  async #fetch(path: string): Promise<JsonObject> {
    const { input, bytes } = await this.#around.client.externalInput(path);
    const { ids, attempt, worker } = this;
    this.#around.fetched({ task: this.#around.config.task, worker, ids, attempt, bytes });
    return input;
  }

  /** Created once per outcome, so that every repetition sends the same bytes. */
  #bodyOf(outcome: Outcome): string {
    if (this.#reported?.outcome === outcome) return this.#reported.body;
    const { clock, config, error } = this.#around;
    const fields = { workerId: config.workerId, logs: this.#logs, amendments: this.#amendments, nowMs: clock.now() };
    const body = JSON.stringify(resultOf(this.#task, outcome, fields));
    this.#reported = { outcome, body };
    // A cancel is not counted as a failure.
    if (outcome.kind === "failed" && !outcome.retryable && outcome.error.code !== "LONGSHORE_CANCELLED") {
      error(`Task failed with terminal error (no retry): ${outcome.error.message} (${config.task}, ${this.#task.taskId})`);
    }
    return body;
  }

  /** Returns false when the server no longer knows the task. */
  async #extend(signal: AbortSignal): Promise<boolean> {
    const { client, config } = this.#around;
    const { taskId, workflowInstanceId } = this.#task;
    const answer = await client.extendLease({ taskId, workflowInstanceId, workerId: config.workerId }, signal);
    if (updateAnswer(answer.status, answer.text) === "taken") return true;
    if (isUnknownTask(answer)) return false;
    throw unexpected("a heartbeat", answer, "200");
  }

  /** The task's state at the server; heartbeats for a finished task get the same response as for any other. */
  async #look(signal: AbortSignal): Promise<BeatAnswer["verdict"]> {
    // After the report, its response decides.
    if (!this.#looksUp || this.#reported !== undefined) return "ok";
    const answer = await this.#around.client.task(this.#task.taskId, signal);
    if (isUnknownTask(answer)) return "gone";
    if (answer.status === 404 || answer.status === 405) {
      // A server that does not have this path will not have it later.
      this.#looksUp = false;
      return "ok";
    }
    const status = answer.status === 200 ? (parseOrUndefined(answer.text) as { status?: unknown } | undefined)?.status : undefined;
    if (typeof status !== "string") throw unexpected("a look at a task", answer, "200 and a task");
    return this.#reported === undefined ? verdictOfStatus(status) : "ok";
  }
}

/**
 * The interval of lease extensions: 0.8 of the response timeout, or a second less than it, whichever is shorter. Undefined when no time is
 * left.
 */
export function leaseEveryMs(responseTimeoutSeconds: number): number | undefined {
  const timeoutMs = responseTimeoutSeconds * 1_000;
  const everyMs = Math.min(0.8 * timeoutMs, timeoutMs - 1_000);
  return everyMs < leaseEveryMsMin ? undefined : everyMs;
}

function isUnknownTask(answer: Answer): boolean {
  return answer.status === 404 && updateAnswer(answer.status, answer.text) === "failed";
}
