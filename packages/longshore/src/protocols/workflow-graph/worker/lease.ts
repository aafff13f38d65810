// One claimed job as an assignment: how its lease is renewed, how a cancel is noticed, how its result is reported.

import type { Backoff } from "../../../core/backoff.ts";
import type { Clock } from "../../../core/clock.ts";
import type { ContextIds } from "../../../core/context.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { Json } from "../../../core/json/json.ts";
import { retry } from "../../../core/retry.ts";
import type { Task } from "../../../core/task.ts";
import { cutMiddle } from "../../../core/text.ts";
import type { SpanIds } from "../../../core/trace.ts";
import { commandsQuestion, journalQuestion } from "../../../core/turn.ts";
import type { DriverTask } from "../../../runner/function/foreseen-turns.ts";
import type { WorkTrace } from "../../../runner/telemetry.ts";
import type { Assignment, BeatAnswer, Call, Control, HoldTerms, LogEntry, Outcome, ReportAnswer } from "../../../runner/transport.ts";
import {
  type ClaimRequest,
  type ClaimResponse,
  type CompleteRequest,
  errorCharsMax,
  leaseTtlSecsDefault,
  leaseTtlSecsMin,
} from "../wire/shapes.ts";
import type { Client } from "./client.ts";
import { dispatch } from "./dispatch.ts";
import type { Settings } from "./options.ts";
import { encodeOutputs, isTexts } from "./outputs.ts";

/** What all leases of one worker share. */
export interface LeaseSurroundings {
  readonly client: Client;
  readonly settings: Settings;
  readonly clock: Clock;
  readonly shell: Task | undefined;
  /** Whether heartbeat responses report a cancel, as the last response showed. While true, cancels are not polled. */
  readonly server: { beatsTellCancel: boolean };
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
  /** Takes turns of functions that steps bring; undefined for a worker without functions. */
  readonly foresee: () => DriverTask["foresee"] | undefined;
  /** The claim that a report may contain; undefined on servers that do not know it. */
  readonly nextClaim: () => ClaimRequest | undefined;
}

/** The term after a heartbeat on servers that always renew to a fixed term. */
const foreignTermMs = leaseTtlSecsDefault * 1_000;

/** The delays between the tries of a request about the run, until the lease ends. */
const askAgain: Backoff = { kind: "exponential", delayMs: 200, maxMs: 5_000, jitter: 0.3 };

export class LeasedJob implements Assignment {
  readonly ids: ContextIds;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly worker: string;
  readonly hold: HoldTerms;
  readonly trace: WorkTrace;
  readonly timeoutMs?: number;
  readonly deferrals: number;
  readonly deferred?: Json;
  /** A server that sends the run's id is a Longshore server, which takes deferrals. */
  readonly defers: boolean;
  readonly #claim: ClaimResponse;
  readonly #around: LeaseSurroundings;
  readonly #ttlMs: number;
  #control: Control | undefined;
  #polling = false;

  constructor(claim: ClaimResponse, around: LeaseSurroundings, span?: SpanIds) {
    const { job, lease } = claim;
    const { settings, server } = around;
    this.#claim = claim;
    this.#around = around;
    this.#ttlMs = secsIn(lease.ttl_secs, settings.leaseTtlSecs) * 1_000;
    const runId = job.run_id ?? job.workflow_id;
    this.ids = { runId, stepId: job.job_id, taskId: `${runId}/${job.job_id}`, grantId: lease.lease_id };
    this.attempt = job.attempt + 1;
    this.idempotencyKey = this.ids.taskId;
    this.worker = settings.workerId;
    this.trace = span === undefined ? {} : { parent: span };
    const hintMs = secsIn(lease.heartbeat_secs, settings.heartbeatMs / 1_000) * 1_000;
    // A heartbeat that also reports a cancel replaces the cancel poll, so it must be as frequent.
    const cancelMs = server.beatsTellCancel ? settings.cancelPollMs : settings.heartbeatMs;
    this.hold = { termMs: this.#ttlMs, everyMs: Math.min(settings.heartbeatMs, hintMs, cancelMs, this.#ttlMs / 3) };
    if (job.timeout_secs !== undefined) this.timeoutMs = job.timeout_secs * 1_000;
    this.defers = job.run_id !== undefined;
    this.deferrals = job.deferrals ?? 0;
    // Null is the output of a deferral that has none.
    if (job.deferred !== undefined && job.deferred !== null) this.deferred = job.deferred;
  }

  resolve(tasks: ReadonlyMap<string, Task>): Call {
    return dispatch(this.#claim.job, tasks, this.#around.shell);
  }

  begin(control: Control): void {
    this.#control = control;
    if (!this.#around.server.beatsTellCancel) this.#pollCancel();
  }

  async beat(signal: AbortSignal): Promise<BeatAnswer> {
    const { server } = this.#around;
    const { verdict, state } = await this.#around.client.beatLease(this.#claim.lease.lease_id, signal);
    if (verdict !== "ok") return { verdict };
    server.beatsTellCancel = state !== undefined;
    if (state === undefined) {
      this.#pollCancel();
      return { verdict, termMs: Math.min(this.#ttlMs, foreignTermMs) };
    }
    // `expires_at_ms` is not used, because the clock of the server may differ from ours. The heartbeat renews the lease for its full term.
    return { verdict: state.cancelled ? "cancel" : "ok", termMs: this.#ttlMs };
  }

  log(entries: readonly LogEntry[]): Promise<void> {
    const { workflow_id, job_id } = this.#claim.job;
    const chunks = entries.map(({ sequence, text, atMs, stream }) => ({
      workflow_id,
      job_id,
      sequence,
      data: text,
      timestamp_ms: atMs,
      stream,
    }));
    return this.#around.client.pushLogs(this.#claim.lease.lease_id, chunks);
  }

  /** The requests of a durable function about its own run. They are repeated until the lease ends. */
  async ask(name: string, value: Json, signal: AbortSignal): Promise<Json> {
    const { client, clock } = this.#around;
    const leaseId = this.#claim.lease.lease_id;
    const again = { clock, signal, backoff: askAgain };
    if (name === journalQuestion) {
      const page = await retry(() => client.journal(leaseId, Number(value), signal), again);
      return page === undefined ? null : (JSON.parse(page) as Json);
    }
    if (name === commandsQuestion) return retry(() => client.command(leaseId, value, signal), again);
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `A worker of workflow-graph has no call ${JSON.stringify(name)}.`);
  }

  async report(
    outcome: Outcome,
    { wantNext, signal }: { readonly wantNext: boolean; readonly signal: AbortSignal },
  ): Promise<ReportAnswer> {
    const { client } = this.#around;
    const leaseId = this.#claim.lease.lease_id;
    if (outcome.kind === "done") {
      const next = wantNext ? this.#around.nextClaim() : undefined;
      const body = this.#completion(outcome.output);
      const { runId, stepId } = this.ids;
      const foreseen =
        next === undefined
          ? undefined
          : await this.#around.foresee()?.(runId, { shown: stepId, since: this.#claim.lease.granted_at_ms }, outcome.output);
      const turn = foreseen === undefined ? {} : { turn: foreseen.turn };
      const answer = await client.complete(leaseId, next === undefined ? body : { ...body, ...turn, next }, signal);
      if (answer.tookTurn) foreseen?.accepted();
      return {
        verdict: answer.verdict,
        next: answer.next === undefined ? undefined : new LeasedJob(answer.next, this.#around, answer.span),
      };
    }
    if (outcome.kind === "deferred") {
      const { delayMs, output } = outcome;
      return { verdict: await client.defer(leaseId, { delay_ms: delayMs, output }, signal) };
    }
    const error = cutMiddle(outcome.error.message, errorCharsMax);
    return { verdict: await client.fail(leaseId, { error, retryable: outcome.retryable }, signal) };
  }

  /** A Longshore server accepts the unchanged result instead of the texts of the protocol. */
  #completion(output: Json): CompleteRequest {
    return this.defers && !isTexts(output) ? { output } : { outputs: encodeOutputs(output) };
  }

  /** Polls every `cancelPollMs` until the job has ended, or until heartbeats report cancels. */
  #pollCancel(): void {
    const { clock, settings, server } = this.#around;
    const over = this.#control?.over;
    if (this.#polling || over === undefined || over.aborted) return;
    this.#polling = true;
    const disarm = clock.at(clock.now() + settings.cancelPollMs, async () => {
      over.removeEventListener("abort", disarm);
      const enough = server.beatsTellCancel || (await this.#askCancel(over));
      this.#polling = false;
      if (!enough) this.#pollCancel();
    });
    over.addEventListener("abort", disarm, { once: true });
  }

  async #askCancel(over: AbortSignal): Promise<boolean> {
    const { client, failing, working } = this.#around;
    const { workflow_id, job_id } = this.#claim.job;
    try {
      const cancelled = await client.isCancelled(workflow_id, job_id, over);
      working("cancel check");
      if (cancelled) this.#control?.stop(new LongshoreError("LONGSHORE_CANCELLED", "cancelled"));
      return cancelled;
    } catch (error) {
      // The next poll may succeed; the lease's own heartbeats decide whether the job continues.
      if (!over.aborted) failing("cancel check", error);
      return false;
    }
  }
}

/** A time from the server, if it is plausible: with zero, this worker would send heartbeats without a pause. */
function secsIn(named: unknown, otherwise: number): number {
  return typeof named === "number" && named >= leaseTtlSecsMin ? named : otherwise;
}
