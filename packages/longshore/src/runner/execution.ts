// The state of one assignment while it runs: its signal, its lease, its log, and the one way to stop it.

import type { OutputStream } from "../core/context.ts";
import type { LongshoreError } from "../core/errors.ts";
import type { SpanIds } from "../core/trace.ts";
import type { RunnerConfig } from "./config.ts";
import { Emitter } from "./emitter.ts";
import type { Events, TaskEvent } from "./events.ts";
import { Hold } from "./heartbeat.ts";
import type { Isolates } from "./isolate/isolates.ts";
import { logBatchDefault, TaskLog } from "./logs.ts";
import { stackOf } from "./stack.ts";
import type { Span, Tracer } from "./telemetry.ts";
import type { Assignment, Control, HoldTerms, Outcome, Transport } from "./transport.ts";

/** What all executions of one transport share. */
export interface Surroundings {
  readonly transport: Transport;
  readonly config: RunnerConfig;
  readonly events: Events;
  /** Runs the handlers of threads and processes; absent when all handlers run inline. */
  readonly isolates: Isolates | undefined;
  /** Called when a handler blocked the event loop for this long. */
  readonly blocked: (task: string, blockedMs: number) => void;
  /** Aborts when the worker drains. Then local waits for a deferred call end. */
  readonly draining: AbortSignal;
  /** Aborts when the worker cannot wait any longer. */
  readonly giveUp: AbortSignal;
  readonly wantNext: () => boolean;
  /** Counts how a task has ended. */
  readonly ended: (kind: Outcome["kind"] | "lost") => void;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
}

/** The name of a task before its handler is known. */
const unresolved = "(not resolved)";

/** The abort reason of `over`. A constant, because an abort without a reason creates an exception with a stack each time. */
const overReason = "The assignment is over.";

export class Execution {
  readonly assignment: Assignment;
  readonly around: Surroundings;
  readonly startedMs: number;
  readonly hold: Hold | undefined;
  /** Absent without a tracer. */
  readonly span: Span | undefined;
  taskName = unresolved;
  // Most handlers never read their signal, log nothing and are never stopped: the objects for that are created on first use.
  #aborter: AbortController | undefined;
  #over: AbortController | undefined;
  #log: TaskLog | undefined;
  #emitter: Emitter | undefined;
  #stopped: LongshoreError | undefined;
  #reporting = false;
  /** A lease that was lost while the result was being reported. */
  #lost: LongshoreError | undefined;
  #graceMs: number | undefined;
  #logClosed = false;
  #stack: string | undefined;
  #finished = false;
  #onStop: ((reason: LongshoreError) => void) | undefined;

  constructor(assignment: Assignment, around: Surroundings) {
    this.assignment = assignment;
    this.around = around;
    const { clock, tracer } = around.config;
    this.startedMs = clock.now();
    this.span = tracer === undefined ? undefined : this.#beginSpan(tracer);
    this.hold = assignment.hold !== undefined && assignment.beat !== undefined ? this.#keep(assignment.hold) : undefined;
    if (assignment.begin !== undefined) assignment.begin(this.#control());
  }

  /** The handler's signal. */
  get signal(): AbortSignal {
    if (this.#aborter === undefined) {
      this.#aborter = new AbortController();
      if (this.#stopped !== undefined) this.#aborter.abort(this.#stopped);
    }
    return this.#aborter.signal;
  }

  /** The span for everything that is done for this work. */
  get trace(): SpanIds | undefined {
    return this.span?.ids ?? this.assignment.trace?.parent;
  }

  /** The reason why the work was stopped; undefined while it is not stopped. */
  get stopped(): LongshoreError | undefined {
    return this.#stopped;
  }

  /** How long the handler may take to end after it was stopped. */
  get graceMs(): number {
    return this.#graceMs ?? this.around.config.abortGraceMs;
  }

  /** Adds to the log. Lines that an abandoned handler writes after its report are dropped. */
  addLog(text: string, stream: OutputStream): void {
    if (this.#logClosed || !this.around.transport.capabilities.logs) return;
    this.#log ??= this.#makeLog();
    this.#log.add(text, stream);
  }

  /** Emits a part. The promise need not be awaited: `partsKept` reports its failure too. */
  emit(uid: string, value: unknown): Promise<void> {
    this.#emitter ??= this.#makeEmitter();
    return this.#emitter.add(uid, value);
  }

  /** Resolves when every part is durable; undefined when there was none. */
  partsKept(): Promise<void> | undefined {
    return this.#emitter?.flush();
  }

  /** Aborts the handler's signal. Only the first call has an effect. */
  stop(reason: LongshoreError, graceMs?: number): void {
    if (this.#stopped !== undefined || this.#finished) return;
    if (this.#reporting && reason.code === "LONGSHORE_LEASE_LOST") {
      this.#lost = reason;
      return;
    }
    this.#stopped = reason;
    this.#graceMs = graceMs;
    this.#aborter?.abort(reason);
    this.around.events.emit("taskStopped", { ...this.event(), reason });
    this.#onStop?.(reason);
  }

  /**
   * The result is about to be reported. From here on, the reply to the report decides whether the result counts: a peer that has accepted
   * it reports the lease as over, too.
   */
  beginReport(): void {
    this.#reporting = true;
  }

  /** The report is over. A lease that was lost meanwhile counts only if the result has not arrived. */
  endReport(arrived: boolean): void {
    this.#reporting = false;
    this.hold?.end();
    if (!arrived && this.#lost !== undefined) this.stop(this.#lost);
  }

  /** Calls `listener` when the work is stopped, or at once if it has already been stopped. There is one listener at a time. */
  onStop(listener: ((reason: LongshoreError) => void) | undefined): void {
    this.#onStop = listener;
    if (listener !== undefined && this.#stopped !== undefined) listener(this.#stopped);
  }

  /** The error that the handler threw. After a stop, it is usually a consequence of the stop. */
  threw(error: unknown): void {
    if (this.#stopped === undefined && this.around.transport.capabilities.stacks === true) this.#stack = stackOf(error);
  }

  /** Sends the last log lines, and the stack of the error; undefined when there were none. */
  closeLog(): Promise<void> | undefined {
    this.#logClosed = true;
    if (this.#stack !== undefined) this.#log ??= this.#makeLog();
    return this.#log?.close(this.around.giveUp, this.#stack);
  }

  /** Sends the rest of the log after the report; undefined when there was no log. */
  endLog(answered: boolean): Promise<void> | undefined {
    return this.#log?.end(answered, this.around.giveUp);
  }

  /** Ends the heartbeats and the transport's watchers. */
  finish(): void {
    this.#finished = true;
    this.hold?.end();
    this.#emitter?.close();
    this.#over?.abort(overReason);
  }

  event(): TaskEvent {
    const { ids, attempt, worker, trace } = this.assignment;
    return { task: this.taskName, transport: this.around.transport.name, worker, ids, attempt, trace: this.trace, fields: trace?.fields };
  }

  get #overSignal(): AbortSignal {
    if (this.#over === undefined) {
      this.#over = new AbortController();
      if (this.#finished) this.#over.abort(overReason);
    }
    return this.#over.signal;
  }

  #control(): Control {
    const over = () => this.#overSignal;
    return {
      stop: (reason, graceMs) => this.stop(reason, graceMs),
      trace: this.trace,
      get over() {
        return over();
      },
    };
  }

  #beginSpan(tracer: Tracer): Span {
    const { ids, attempt, worker, trace = {} } = this.assignment;
    return tracer.begin({ transport: this.around.transport.name, worker, ids, attempt, trace });
  }

  #keep(terms: HoldTerms): Hold {
    const { config, failing, working } = this.around;
    const stop = (reason: LongshoreError) => this.stop(reason);
    return new Hold(this.assignment, terms, {
      clock: config.clock,
      random: config.random,
      stop,
      failing,
      working,
      over: () => this.#overSignal,
    });
  }

  #makeEmitter(): Emitter {
    const { config, failing, working } = this.around;
    return new Emitter({
      clock: config.clock,
      send: (parts) => this.assignment.emit?.(parts) ?? Promise.resolve(),
      signal: () => this.signal,
      stop: (reason) => this.stop(reason),
      failing,
      working,
    });
  }

  #makeLog(): TaskLog {
    const { transport, config, events, failing, working } = this.around;
    return new TaskLog({
      clock: config.clock,
      batch: transport.logBatch ?? logBatchDefault,
      send: (entries) => this.assignment.log?.(entries) ?? Promise.resolve(),
      failing,
      working,
      dropped: (lines) => events.emit("logsDropped", { ...this.event(), lines }),
    });
  }
}
