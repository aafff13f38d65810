// The port between the runner and a protocol's worker half. A transport knows how work arrives and how news about it travels back; the
// runner knows everything else: slots, handlers, heartbeats, deadlines, retries of reports, draining.
//
// The life of one piece of work:
//   1. The transport takes a slot, and only then receives (polls, reads one message, accepts one request).
//   2. It hands an Assignment to `slot.run()`. The runner calls `begin`, then `resolve`, then the handler; `beat`, `log`, `progress`
//      and `emit` are called meanwhile; `report` comes last, again and again while it throws, until the hold is over.
//   3. The slot is free when the report is settled. An answer to `report` may bring the next assignment, which runs in the same slot.
//
// What a transport cannot do it declares in `capabilities`, and the runner falls back as written there.

import type { Clock } from "../core/clock.ts";
import type { Blobs, ContextIds, OutputStream, StepPart } from "../core/context.ts";
import type { ErrorCode, LongshoreError } from "../core/errors.ts";
import type { Json } from "../core/json/json.ts";
import type { Task } from "../core/task.ts";
import type { SpanIds } from "../core/trace.ts";
import type { Verdict } from "../core/verdict.ts";
import type { EventName, TransportEvent, TransportEventName } from "./events.ts";
import type { Notice } from "./notices.ts";
import type { WorkTrace } from "./telemetry.ts";

/** A connection of a worker to an orchestrator: it receives assignments and sends reports. */
export interface Transport {
  /** For logs and `status()`: the protocol and whom it talks to, never a token. */
  readonly name: string;
  readonly capabilities: Capabilities;
  /** How logs are grouped before `Assignment.log`; the runner's own numbers when absent. */
  readonly logBatch?: LogBatch;
  /** How often a report is tried; until the hold would be over, with growing pauses, when absent. */
  readonly reportTries?: ReportTries;
  /** How many slots these tasks can fill by the transport's own limits. Used where `work()` has no number. */
  slotsFor?(tasks: ReadonlyMap<string, Task>): number;
  /** How long running tasks may continue when the worker stops, where its protocol has a setting for that and `work()` has none. */
  readonly drainMs?: number;
  /**
   * Begins to receive. Resolves when receiving has begun, which does not need a reachable peer: troubles go to `host.failing`. Rejects
   * only for a mistake in the configuration. Called once.
   */
  start(host: TransportHost): Promise<void>;
  /**
   * Stops receiving; afterwards no slot is taken. Work already handed over continues and still beats and reports. `host.draining` has
   * aborted before this is called. Resolves when nothing more can arrive. Idempotent.
   */
  drain(): Promise<void>;
  /** Closes connections and signs off where the protocol can. Called after the last report is settled. Idempotent. */
  stop(): Promise<void>;
}

/** Something that can make a transport to itself, such as a server in this process. */
export interface TransportSource {
  transport(): Transport;
}

/** What a protocol can carry. Each comment describes what the runner does when it is false. */
export interface Capabilities {
  /** "Call me again later" without spending an attempt. Missing: the runner waits in its slot, beating, then calls the handler again. */
  readonly defer: boolean;
  /** Partial output or progress while the handler runs. Missing: `ctx.progress` becomes a log line. */
  readonly progress: boolean;
  /** Parts that are kept, and those of other steps. Missing: `ctx.emit` is a progress, `ctx.parts` throws LONGSHORE_BAD_CONFIG. */
  readonly streams: boolean;
  /** Log lines. Missing: they are dropped. */
  readonly logs: boolean;
  /** Blobs. Missing: `ctx.blobs` rejects with LONGSHORE_BAD_CONFIG. */
  readonly blobs: boolean;
  /** News of a cancel while the handler runs. Missing: a cancel is noticed at the report. */
  readonly cancel: boolean;
}

/** What the runner gives to a transport. */
export interface TransportHost {
  /** Every task of this worker, by name. */
  readonly tasks: ReadonlyMap<string, Task>;
  readonly clock: Clock;
  readonly slots: TransportSlots;
  /** Aborts when receiving must end. */
  readonly draining: AbortSignal;
  /** Aborts when the user will not wait for a gentle end: what is under way may be cut off. */
  readonly forced: AbortSignal;
  /** An empty wait may hold a slot no longer than this; other transports that share the slots wait for it meanwhile. */
  readonly waitMsMax: number;
  /** Logs one line for the people who run the worker. For what repeats there are `failing` and `working`. */
  notice(notice: Notice): void;
  /** A retryable failure (`what` names it, such as "claim"). Logged once, however often it is called. */
  failing(what: string, error: unknown): void;
  /** The same thing works. After a `failing` the end and the duration are logged. The first call of all means that the peer is there. */
  working(what: string): void;
  /** Sends an event to listeners, with this transport's name. The events of executions and of reports come from the runner. */
  emit<Name extends TransportEventName>(name: Name, event: TransportEvent<Name>): void;
  /** Whether there is a listener: without one an event need not be made. */
  wants(name: EventName): boolean;
}

/** The worker's slots, for one transport. */
export interface TransportSlots {
  readonly total: number;
  /** The number of `work()`, or undefined when it is our choice. */
  readonly configured: number | undefined;
  /** How many are free right now. */
  readonly free: number;
  /** Waits for a slot, first come first served among transports. Undefined when draining began or the signal aborted instead. */
  take(signal?: AbortSignal): Promise<Slot | undefined>;
  /** Every slot that is free now, at most `max`; never waits. For polls that can use several at once. */
  takeFree(max?: number): Slot[];
}

/** The right to run one assignment. Either `run` or `release` must be called; what is called later does nothing. */
export interface Slot {
  /** Runs the assignment, and whatever its report brings, then frees the slot. Never rejects; resolves when the slot is free. */
  run(assignment: Assignment): Promise<void>;
  /** Gives the slot back unused. */
  release(): void;
}

/** One piece of work and the only way to report about it. */
export interface Assignment {
  readonly ids: ContextIds;
  /** 1 on the first try. */
  readonly attempt: number;
  readonly idempotencyKey: string;
  /** How the orchestrator calls this worker, where it has a name for it. */
  readonly worker?: string;
  /** How this work is kept. Absent when the protocol needs no heartbeats. */
  readonly hold?: HoldTerms;
  /** The orchestrator's own limit for the whole attempt; the task's timeout limits each call of its handler. The earlier end applies. */
  readonly timeoutMs?: number;
  /** Earlier deferrals of this attempt, where the protocol brings them back. */
  readonly deferrals?: number;
  readonly deferred?: Json;
  readonly blobs?: Blobs;
  /** Whose trace this work belongs to. */
  readonly trace?: WorkTrace;
  /** `ctx.native`. */
  readonly native?: Json;
  /**
   * Finds the handler and its input. Throws when there is none or the input cannot be read; the failure is then reported (a TerminalError
   * as final). May wait, for inputs that are kept elsewhere.
   */
  resolve(tasks: ReadonlyMap<string, Task>): Call | Promise<Call>;
  /** Called first, before anything else runs. The transport may keep `control` to stop the work from its side. */
  begin?(control: Control): void;
  /** Renews the hold. Throws when the answer is not known (the runner tries again until the hold would be over). */
  beat?(signal: AbortSignal): Promise<BeatAnswer>;
  /** Sends log entries, oldest first. Throws when they may be sent again; the runner keeps and repeats them, within bounds. */
  log?(entries: readonly LogEntry[]): Promise<void>;
  /** Sends progress or partial output. Throwing loses only this value. */
  progress?(value: Json): Promise<void>;
  /**
   * Keeps parts, all or none of them, in this order; durable when it resolves. A uid that was sent before, by this attempt or an earlier
   * one, is the same part. At most 500 parts and about 4 MiB come at once, one call after the other. Throws when they may be sent again;
   * with LONGSHORE_LEASE_LOST or LONGSHORE_CANCELLED when the work is not wanted any more, with LONGSHORE_BAD_INPUT or LONGSHORE_LIMIT when
   * they never will be taken.
   */
  emit?(parts: readonly StepPart[]): Promise<void>;
  /** The parts of another step of the run, from the first one on. Never throws: `next` reports what is wrong. */
  receive?(stepId: string): PartReader;
  /** `ctx.amend`; what it does not know it ignores. */
  amend?(name: string, value: Json): void;
  /** `ctx.ask`. Rejects with LONGSHORE_BAD_CONFIG for what it does not know. `signal` is the handler's. */
  ask?(name: string, value: Json, signal: AbortSignal): Promise<Json>;
  /**
   * Reports how it ended. Throws when the answer is not known: the runner repeats the same report, so it must be safe to repeat. A
   * LongshoreError with code LONGSHORE_BAD_OUTPUT or LONGSHORE_LIMIT means that this outcome can never be accepted; the runner then
   * reports a final failure instead. `wantNext` allows the transport to bring the next assignment with the answer (in the same
   * transaction or the same request); when it is false none may be taken.
   */
  report(outcome: Outcome, options: { readonly wantNext: boolean; readonly signal: AbortSignal }): Promise<ReportAnswer>;
  /** No try succeeded and none follows, though the result may still be wanted: the transport may keep it and send it later. */
  undelivered?(outcome: Outcome, error: Error): void | Promise<void>;
}

/** A schedule of tries, whatever the hold is. A worker that stops does not wait for the next one. */
export type ReportTries =
  /** The pauses before the second try, the third and so on; one try more than there are pauses. */
  | { readonly pausesMs: readonly number[]; readonly patienceMs?: undefined }
  /** With growing pauses for this long. For protocols where only the orchestrator ends a hold, so that its length is not known. */
  | { readonly patienceMs: number; readonly pausesMs?: undefined };

/** Reads the parts of one step, a page at a time. */
export interface PartReader {
  /**
   * The next parts; waits until there are some. Undefined when the step has ended, and every part was given. Rejects with
   * LONGSHORE_TASK_FAILED when it ended without a result, LONGSHORE_NOT_FOUND when the run has no such step. May return an empty page when
   * the signal aborts.
   */
  next(signal: AbortSignal): Promise<readonly StepPart[] | undefined>;
}

/** The terms of a lease: how long it lasts and how often it is renewed. */
export interface HoldTerms {
  /** How long the hold lasts from now, by this machine's clock. */
  readonly termMs: number;
  /** How often to beat. */
  readonly everyMs: number;
  /**
   * The share of `everyMs` by which each pause is drawn longer or shorter, so that tasks that began together do not beat together; the
   * default is none.
   */
  readonly jitter?: number;
}

/** The task that an assignment is for, and its input. */
export interface Call {
  readonly task: Task;
  readonly input: unknown;
  readonly upstream?: { readonly [stepId: string]: unknown };
}

/** The transport's hand on a running assignment. */
export interface Control {
  /**
   * Aborts the handler's signal now. With LONGSHORE_LEASE_LOST nothing is reported any more; with LONGSHORE_CANCELLED a final failure is.
   * Later calls do nothing. `graceMs` is how long the handler may take to end, where the orchestrator sets it; the default is the worker's
   * own grace.
   */
  stop(reason: LongshoreError, graceMs?: number): void;
  /** The span to name in calls that are made for this work: its own, or its caller's without a tracer. */
  readonly trace: SpanIds | undefined;
  /** Aborts when the assignment is over, reported or not: the transport's own timers and watchers end here. */
  readonly over: AbortSignal;
}

/** The answer of an orchestrator to a heartbeat. */
export interface BeatAnswer {
  /** `ok` and `again` renew; `cancel` stops the work; the rest mean that the hold is lost. */
  readonly verdict: Verdict;
  /** How long the hold lasts from when this beat was sent, when that differs from before. */
  readonly termMs?: number;
}

/** One line of the log of a task. */
export interface LogEntry {
  /** Counts from 0 within one execution, over both streams. */
  readonly sequence: number;
  readonly atMs: number;
  readonly stream: OutputStream;
  /** Ends with a newline, unless it is a piece of a text too long for one entry. */
  readonly text: string;
}

/** The limits of one batch of log lines: the maximum delay before it is sent, and its size. */
export interface LogBatch {
  readonly everyMs: number;
  readonly bytesMax: number;
}

/** How one execution ended: with an output, with an error, or with the wish to be called again later. */
export type Outcome =
  | { readonly kind: "done"; readonly output: Json }
  /** `output` is what there is in spite of the failure. */
  | { readonly kind: "failed"; readonly error: Failure; readonly retryable: boolean; readonly output?: Json }
  /** Only when `capabilities.defer`. */
  | { readonly kind: "deferred"; readonly delayMs: number; readonly output: Json | undefined };

/** An error as it is reported to an orchestrator. */
export interface Failure {
  /** The class of the error, such as `TypeError`. */
  readonly name: string;
  readonly message: string;
  readonly code: ErrorCode | undefined;
  readonly stack: string | undefined;
}

/** The answer of an orchestrator to a report. */
export interface ReportAnswer {
  /** `ok`, `again` and `cancel` mean that the report has arrived; the rest that the hold was over before it came. */
  readonly verdict: Verdict;
  readonly next?: Assignment;
  /** False where a protocol has no answer to a report: `ok` then means that it has left, and no more. */
  readonly acknowledged?: false;
}
