// Detects a blocked event loop while tasks run. A handler that computes for seconds without a pause delays heartbeats, cancellations and
// every other task, and leases may be lost. Nothing else would show the reason to its author.

import type { Clock } from "../core/clock.ts";

const tickMs = 1_000;
/** Shorter delays of timers are normal. */
export const blockedMsMin = 1_000;

export class LoopWatch {
  readonly #clock: Clock;
  readonly #report: (blockedMs: number) => void;
  #dueMs = 0;
  #blocked = false;
  #wanted = false;
  #disarm: (() => void) | undefined;

  constructor(clock: Clock, report: (blockedMs: number) => void) {
    this.#clock = clock;
    this.#report = report;
  }

  /** Called when the first task starts; an idle worker is not watched. */
  start(): void {
    this.#wanted = true;
    if (this.#disarm === undefined) this.#arm();
  }

  /**
   * Called while the last task is still known. So a task that blocked until its end is noticed here, before the timer can fire. The timer
   * is not cancelled, because a worker with one task after the other would set and cancel it for each task.
   */
  pause(): void {
    if (this.#disarm !== undefined) this.#look();
    this.#wanted = false;
  }

  stop(): void {
    this.#wanted = false;
    this.#disarm?.();
    this.#disarm = undefined;
  }

  #arm(): void {
    this.#dueMs = this.#clock.now() + tickMs;
    this.#disarm = this.#clock.at(this.#dueMs, () => this.#onTick());
  }

  #onTick(): void {
    this.#disarm = undefined;
    if (!this.#wanted) return;
    this.#look();
    this.#arm();
  }

  #look(): void {
    const lateMs = this.#clock.now() - this.#dueMs;
    const blocked = lateMs > blockedMsMin;
    // Consecutive late ticks belong to one episode, which is reported once.
    if (blocked && !this.#blocked) this.#report(lateMs);
    this.#blocked = blocked;
  }
}
