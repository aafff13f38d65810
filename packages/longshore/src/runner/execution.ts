// The state of one assignment while it is worked on: its signal, its hold, its log, and the one way to stop it.

import type { LongshoreError } from "../errors.ts";
import type { RunnerConfig } from "./config.ts";
import type { Events, TaskEvent } from "./events.ts";
import { Hold } from "./heartbeat.ts";
import { logBatchDefault, TaskLog } from "./logs.ts";
import type { Assignment, Transport } from "./transport.ts";

/** What every execution of one transport shares. */
export interface Surroundings {
  readonly transport: Transport;
  readonly config: RunnerConfig;
  readonly events: Events;
  /** Aborts when the worker drains: local waits for a deferred call end then. */
  readonly draining: AbortSignal;
  /** Aborts when the worker cannot wait for anything any longer. */
  readonly giveUp: AbortSignal;
  readonly wantNext: () => boolean;
  readonly failing: (what: string, error: unknown) => void;
  readonly working: (what: string) => void;
}

/** What a task is called before its handler is known. */
const unresolved = "(not resolved)";

export class Execution {
  readonly assignment: Assignment;
  readonly around: Surroundings;
  readonly startedMs: number;
  readonly hold: Hold | undefined;
  readonly log: TaskLog;
  taskName = unresolved;
  readonly #aborter = new AbortController();
  readonly #over = new AbortController();
  #onStop: ((reason: LongshoreError) => void) | undefined;

  constructor(assignment: Assignment, around: Surroundings) {
    this.assignment = assignment;
    this.around = around;
    const { clock } = around.config;
    const { failing, working } = around;
    this.startedMs = clock.now();
    const stop = (reason: LongshoreError) => this.stop(reason);
    const keeps = assignment.hold !== undefined && assignment.beat !== undefined;
    this.hold = keeps ? new Hold(assignment, assignment.hold, { clock, stop, failing, working, over: this.#over.signal }) : undefined;
    this.log = new TaskLog({
      clock,
      batch: around.transport.logBatch ?? logBatchDefault,
      // Without a place to send them, lines end here; the execution still counts them.
      send: (entries) => assignment.log?.(entries) ?? Promise.resolve(),
      failing,
      working,
      dropped: (lines) => around.events.emit("logsDropped", { ...this.event(), lines }),
    });
    assignment.begin?.({ stop, over: this.#over.signal });
  }

  /** The handler's signal. */
  get signal(): AbortSignal {
    return this.#aborter.signal;
  }

  /** Why the work was stopped, or undefined while nobody stopped it. */
  get stopped(): LongshoreError | undefined {
    return this.signal.aborted ? (this.signal.reason as LongshoreError) : undefined;
  }

  /** Aborts the handler's signal. Only the first reason counts. */
  stop(reason: LongshoreError): void {
    if (this.signal.aborted || this.#over.signal.aborted) return;
    this.#aborter.abort(reason);
    this.around.events.emit("taskStopped", { ...this.event(), reason });
    this.#onStop?.(reason);
  }

  /** Calls `listener` when the work is stopped, at once when it already was. One listener at a time. */
  onStop(listener: ((reason: LongshoreError) => void) | undefined): void {
    this.#onStop = listener;
    if (listener !== undefined && this.stopped !== undefined) listener(this.stopped);
  }

  /** Ends the beats and the transport's watchers. */
  finish(): void {
    this.hold?.end();
    this.#over.abort();
  }

  event(): TaskEvent {
    const { ids, attempt } = this.assignment;
    return { task: this.taskName, transport: this.around.transport.name, ids, attempt };
  }
}
