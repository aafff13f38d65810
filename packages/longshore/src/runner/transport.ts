// The port between the runner and a protocol's worker half. A transport receives work and sends reports. The runner does everything else:
// slots, handlers, heartbeats, deadlines, retries of reports, draining.
//
// The life of one piece of work:
//   1. The transport takes a slot, and only then receives (polls, reads one message, accepts one request).
//   2. It passes an Assignment to `slot.run()`. The runner calls `begin`, then `resolve`, then the handler; `beat`, `log`, `progress`
//      and `emit` are called while it runs. `report` is called last, and is repeated while it throws, until the lease ends.
//   3. The slot is free when the report is settled. The reply to `report` may contain the next assignment, which runs in the same slot.
//
// A transport declares in `capabilities` what its protocol supports. The comments there describe what the runner does when a capability is
// missing.

import type { Clock } from "../core/clock.ts";
import type { Blobs, ContextIds, OutputStream, StepPart } from "../core/context.ts";
import type { ErrorCode, LongshoreError } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import type { Task } from "../core/task.ts";
import type { SpanIds } from "../core/trace.ts";
import type { Verdict } from "../core/verdict.ts";
import type { EventName, TransportEvent, TransportEventName } from "./events.ts";
import type { ValueLimit } from "./function/value-limit.ts";
import type { Notice } from "./notices.ts";
import type { WorkTrace } from "./telemetry.ts";

/** A connection of a worker to an orchestrator: it receives assignments and sends reports. */
export interface Transport {
  /** For logs and `status()`: the protocol and its peer, never a token. */
  readonly name: string;
  readonly capabilities: Capabilities;
  /** How log lines are batched before `Assignment.log`. Default: the runner's own limits. */
  readonly logBatch?: LogBatch;
  /** How often a report is tried. Default: until the lease ends, with growing delays. */
  readonly reportTries?: ReportTries;
  /** How many slots these tasks can fill within the transport's own limits. Used when `work()` sets no number. */
  slotsFor?(tasks: ReadonlyMap<string, Task>): number;
  /**
   * How long running tasks may continue when the worker stops. Used when `work()` sets no time; absent when the protocol has no such
   * setting.
   */
  readonly drainMs?: number;
  /**
   * Starts to receive. Resolves when receiving has started; the peer need not be reachable: failures are reported to `host.failing`.
   * Rejects only for a mistake in the configuration. Called once.
   */
  start(host: TransportHost): Promise<void>;
  /**
   * Stops receiving; takes no more slots afterwards. Work that was already passed on continues, with its heartbeats and reports.
   * `host.draining` has aborted before this call. Resolves when nothing more can arrive. Idempotent.
   */
  drain(): Promise<void>;
  /** Closes connections and signs off where the protocol supports it. Called after the last report is settled. Idempotent. */
  stop(): Promise<void>;
}

/** An object that can make a transport to itself, such as a server in this process. */
export interface TransportSource {
  transport(): Transport;
}

/** What a protocol supports. Each comment describes what the runner does when the capability is false. */
export interface Capabilities {
  /**
   * Deferrals: a later call that uses up no attempt. When false: the runner waits in the slot, renews the lease, then calls the handler
   * again.
   */
  readonly defer: boolean;
  /** Partial output or progress while the handler runs. When false: `ctx.progress` writes a log line. */
  readonly progress: boolean;
  /**
   * Durable parts, and reading the parts of other steps. When false: `ctx.emit` reports progress, `ctx.parts` throws LONGSHORE_BAD_CONFIG.
   */
  readonly streams: boolean;
  /** Log lines. When false: they are dropped. */
  readonly logs: boolean;
  /**
   * True when the runner must write the stack of an unexpected error to the log of its task. When absent: the stack is only in
   * `Failure.stack`.
   */
  readonly stacks?: boolean;
  /** Blobs. When false: `ctx.blobs` rejects with LONGSHORE_BAD_CONFIG. */
  readonly blobs: boolean;
  /** Turns of durable functions (core/turn.ts): `ask` reads journals and adds commands. When absent: `work()` refuses workflows. */
  readonly functions?: boolean;
  /** The maximum size of one value of a command of a durable function. When absent: any size. */
  readonly commandValue?: ValueLimit;
  /** Cancellation while the handler runs. When false: a cancellation is noticed at the report. */
  readonly cancel: boolean;
}

/** The runner, as a transport sees it. */
export interface TransportHost {
  /** Every task of this worker, by name. */
  readonly tasks: ReadonlyMap<string, Task>;
  readonly clock: Clock;
  readonly slots: TransportSlots;
  /** Aborts when receiving must end. */
  readonly draining: AbortSignal;
  /** Aborts when the user does not wait for a graceful stop: running work may be cut off. */
  readonly forced: AbortSignal;
  /** How long an empty wait may hold a slot; other transports that share the slots wait for it. */
  readonly waitMsMax: number;
  /** Logs one line for the people who run the worker. For repeated failures use `failing` and `working`. */
  notice(notice: Notice): void;
  /** Reports a failure that is retried; `what` names the operation, such as "claim". Logged once, regardless of the number of calls. */
  failing(what: string, error: unknown): void;
  /**
   * Reports that the operation works. After `failing`, the end and the duration are logged. The first call of all means that the peer is
   * reachable.
   */
  working(what: string): void;
  /** Sends an event to listeners, with this transport's name. The runner itself emits the events of executions and reports. */
  emit<Name extends TransportEventName>(name: Name, event: TransportEvent<Name>): void;
  /** Whether the event has a listener: without one, the event need not be created. */
  wants(name: EventName): boolean;
}

/** The worker's slots, for one transport. */
export interface TransportSlots {
  readonly total: number;
  /** The number that `work()` sets; undefined for the default. */
  readonly configured: number | undefined;
  /** How many slots are free now. */
  readonly free: number;
  /** Waits for a slot; transports are served in order. Returns undefined when draining began or the signal aborted first. */
  take(signal?: AbortSignal): Promise<Slot | undefined>;
  /** Takes every slot that is free now, at most `max`; never waits. For polls that can use several slots. */
  takeFree(max?: number): Slot[];
}

/** The right to run one assignment. Either `run` or `release` must be called; later calls have no effect. */
export interface Slot {
  /**
   * Runs the assignment, and the next ones that its reports return, then frees the slot. Never rejects; resolves when the slot is free.
   */
  run(assignment: Assignment): Promise<void>;
  /** Releases the slot unused. */
  release(): void;
}

/** One piece of work and the only way to report about it. */
export interface Assignment {
  readonly ids: ContextIds;
  /** 1 on the first attempt. */
  readonly attempt: number;
  readonly idempotencyKey: string;
  /** The orchestrator's name for this worker, if it has one. */
  readonly worker?: string;
  /** The lease of this work. Absent when the protocol needs no heartbeats. */
  readonly hold?: HoldTerms;
  /** The orchestrator's own limit for the whole attempt; the task's timeout limits each call of its handler. The earlier one applies. */
  readonly timeoutMs?: number;
  /** The number of earlier deferrals of this attempt, where the protocol provides it. */
  readonly deferrals?: number;
  readonly deferred?: Json;
  /** Whether the server that sent this work supports deferrals. Default: `capabilities.defer`. */
  readonly defers?: boolean;
  readonly blobs?: Blobs;
  /** The trace that this work belongs to. */
  readonly trace?: WorkTrace;
  /** The value of `ctx.native`. */
  readonly native?: Json;
  /**
   * Finds the handler and its input. Throws when there is no handler or the input cannot be read; the failure is then reported (a
   * TerminalError as final). May wait, for inputs that are stored elsewhere.
   */
  resolve(tasks: ReadonlyMap<string, Task>): Call | Promise<Call>;
  /** Called first. The transport may keep `control` to stop the work later. */
  begin?(control: Control): void;
  /** Renews the lease. Throws when the result is not known (the runner tries again until the lease ends). */
  beat?(signal: AbortSignal): Promise<BeatAnswer>;
  /** Sends log entries, oldest first. When it throws, the runner keeps the entries and sends them again, up to a limit. */
  log?(entries: readonly LogEntry[]): Promise<void>;
  /** Sends progress or partial output. Throwing loses only this value. */
  progress?(value: Json): Promise<void>;
  /**
   * Stores parts, all or none of them, in this order; they are durable when it resolves. A uid that this attempt or an earlier one has sent
   * is the same part. The runner sends at most 500 parts and about 4 MiB at once, one call after the other. Throws LONGSHORE_LEASE_LOST or
   * LONGSHORE_CANCELLED when the work is not wanted any more. Throws LONGSHORE_BAD_INPUT or LONGSHORE_LIMIT when the parts will never be
   * accepted. After any other error, the parts may be sent again.
   */
  emit?(parts: readonly StepPart[]): Promise<void>;
  /** The parts of another step of the run, from the first one on. Never throws: `next` reports errors. */
  receive?(stepId: string): PartReader;
  /** `ctx.amend`; ignores unknown names. */
  amend?(name: string, value: Json): void;
  /** `ctx.ask`. Rejects with LONGSHORE_BAD_CONFIG for unknown names. `signal` is the handler's. */
  ask?(name: string, value: Json, signal: AbortSignal): Promise<Json>;
  /**
   * Reports the outcome. Throws when the result is not known: the runner repeats the same report, so it must be safe to repeat. A
   * LongshoreError with code LONGSHORE_BAD_OUTPUT or LONGSHORE_LIMIT means that this outcome can never be accepted; the runner then reports
   * a final failure instead. `wantNext` allows the transport to return the next assignment with the reply (in the same transaction or the
   * same request); when it is false, it must not take one.
   */
  report(outcome: Outcome, options: { readonly wantNext: boolean; readonly signal: AbortSignal }): Promise<ReportAnswer>;
  /**
   * Called when all tries failed and none follows, though the result may still be wanted: the transport may store it and send it later.
   */
  undelivered?(outcome: Outcome, error: Error): void | Promise<void>;
}

/** A schedule of tries, independent of the lease. A worker that stops does not wait for the next try. */
export type ReportTries =
  /** The delays before the second try, the third and so on; there is one more try than delays. */
  | { readonly pausesMs: readonly number[]; readonly patienceMs?: undefined }
  /** Tries for this long, with growing delays. For protocols in which only the orchestrator ends a lease: there its length is not known. */
  | { readonly patienceMs: number; readonly pausesMs?: undefined };

/** Reads the parts of one step, a page at a time. */
export interface PartReader {
  /**
   * Returns the next parts; waits until there are some. Returns undefined when the step has ended and every part was returned. Rejects with
   * LONGSHORE_TASK_FAILED when the step ended without a result, and with LONGSHORE_NOT_FOUND when the run has no such step. May return an
   * empty page when the signal aborts.
   */
  next(signal: AbortSignal): Promise<readonly StepPart[] | undefined>;
}

/** The terms of a lease: how long it lasts and how often it is renewed. */
export interface HoldTerms {
  /** How long the lease lasts from now, by this machine's clock. */
  readonly termMs: number;
  /** The interval of heartbeats. */
  readonly everyMs: number;
  /**
   * The share of `everyMs` by which each interval varies at random: tasks that started together must not send heartbeats together. Default:
   * none.
   */
  readonly jitter?: number;
}

/** The task that an assignment is for, and its input. */
export interface Call {
  readonly task: Task;
  readonly input: unknown;
  readonly upstream?: { readonly [stepId: string]: unknown };
}

/** Control of a transport over a running assignment. */
export interface Control {
  /**
   * Aborts the handler's signal now. With LONGSHORE_LEASE_LOST, nothing is reported any more; with LONGSHORE_CANCELLED, a final failure is
   * reported. Later calls have no effect. `graceMs` is how long the handler may take to end, if the orchestrator sets it. Default: the
   * worker's own grace period.
   */
  stop(reason: LongshoreError, graceMs?: number): void;
  /** The span for calls that are made for this work: its own or, without a tracer, its caller's. */
  readonly trace: SpanIds | undefined;
  /** Aborts when the assignment is over, reported or not: the transport ends its own timers and watchers then. */
  readonly over: AbortSignal;
}

/** The reply of an orchestrator to a heartbeat. */
export interface BeatAnswer {
  /** `ok` and `again` renew the lease; `cancel` stops the work; all others mean that the lease is lost. */
  readonly verdict: Verdict;
  /** The new duration of the lease from the sending of this heartbeat, when it has changed. */
  readonly termMs?: number;
}

/** One line of the log of a task. */
export interface LogEntry {
  /** Counts from 0 within one execution, over both streams. */
  readonly sequence: number;
  readonly atMs: number;
  readonly stream: OutputStream;
  /** Ends with a newline, except for a piece of a text that is too long for one entry. */
  readonly text: string;
}

/** The limits of one batch of log lines: the maximum delay before it is sent, and its size. */
export interface LogBatch {
  readonly everyMs: number;
  readonly bytesMax: number;
}

/** How one execution ended: with an output, with an error, or with a deferral. */
export type Outcome =
  | { readonly kind: "done"; readonly output: Json }
  /** With `output`, the task has failed and has an output nevertheless. */
  | { readonly kind: "failed"; readonly error: Failure; readonly retryable: boolean; readonly output?: Json }
  /** Only when `capabilities.defer`, or `defers` of the assignment. */
  | { readonly kind: "deferred"; readonly delayMs: number; readonly output: Json | undefined };

/** An error as it is reported to an orchestrator. */
export interface Failure {
  /** The class of the error, such as `TypeError`. */
  readonly name: string;
  readonly message: string;
  readonly code: ErrorCode | undefined;
  readonly stack: string | undefined;
}

/** The reply of an orchestrator to a report. */
export interface ReportAnswer {
  /** `ok`, `again` and `cancel` mean that the report was received; all others mean that the lease had ended before. */
  readonly verdict: Verdict;
  readonly next?: Assignment;
  /** False when the protocol has no reply to a report: then `ok` means only that the report was sent. */
  readonly acknowledged?: false;
}
