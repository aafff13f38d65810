// The health of the workers, for people and probes: one entry for each task.

import type { Clock } from "../core/clock.ts";
import type { Events } from "./events.ts";

/** The health of the worker of one task. */
export interface WorkerStatus {
  /** The name of the task it works for. */
  readonly worker: string;
  /** False when the process of this worker has ended or is blocked. */
  readonly alive: boolean;
  readonly pid: number | undefined;
  /** The last exit code of its process; null when it has not ended yet, or was ended by a signal. */
  readonly exitCode: number | null;
  readonly restarts: number;
  /** Milliseconds since the epoch; undefined before the first poll. */
  readonly lastPollAt: number | undefined;
  readonly lastError: string | undefined;
  /** Tasks of this worker that run now. */
  readonly inFlight: number;
}

/** The health of all workers of this process, by the name of their task. */
export type WorkerStatuses = { readonly [worker: string]: WorkerStatus };

/** The state that the runner of this process has for each task. */
export interface TaskHealth {
  readonly restarts: number;
  readonly lastPollAt: number | undefined;
  readonly lastError: string | undefined;
}

/** Collects `TaskHealth` from events. */
export class HealthWatch {
  readonly #clock: Clock;
  readonly #polledAtMs = new Map<string, number>();
  readonly #errors = new Map<string, string>();
  readonly #restarts = new Map<string, number>();
  /** Values for all tasks together: protocols that poll for all tasks at once report nothing about a single task. */
  #answeredAtMs: number | undefined;
  #anyError: string | undefined;

  constructor(events: Events, clock: Clock) {
    events.watch("pollStarted", ({ task }) => this.#polledAtMs.set(task, clock.now()));
    events.watch("pollFailed", ({ task, error }) => this.#errors.set(task, error.message));
    events.watch("executionFailed", ({ task, error }) => this.#errors.set(task, error.message));
    events.watch("updateFailed", ({ task, error }) => this.#errors.set(task, error.message));
    events.watch("workerRestarted", ({ task, restarts }) => this.#restarts.set(task, restarts));
    events.watch("failing", ({ error }) => {
      this.#anyError = error.message;
    });
    this.#clock = clock;
  }

  /** Called for every reply of the orchestrator. */
  answered(): void {
    this.#answeredAtMs = this.#clock.now();
  }

  of(task: string): TaskHealth {
    return {
      restarts: this.#restarts.get(task) ?? 0,
      lastPollAt: this.#polledAtMs.get(task) ?? this.#answeredAtMs,
      lastError: this.#errors.get(task) ?? this.#anyError,
    };
  }
}

/** The response body of `/health`. */
export function healthBody(workers: WorkerStatuses): { status: "UP" | "DOWN"; workers: WorkerStatuses } {
  return { status: allAlive(workers) ? "UP" : "DOWN", workers };
}

export function allAlive(workers: WorkerStatuses): boolean {
  return Object.values(workers).every(({ alive }) => alive);
}
