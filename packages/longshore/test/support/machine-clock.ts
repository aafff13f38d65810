// The clock of a server on a machine whose wall clock a test can set. Time passes a second at a time, and timers fire in between.

import { type Clock, steadyTime } from "../../src/core/clock.ts";

const secondMs = 1_000;

export class MachineClock implements Clock {
  #wallMs = Date.UTC(2020, 0, 1);
  #steadyMs = 0;
  readonly #timers = new Set<{ atMs: number; fn: () => void }>();
  readonly #time = steadyTime({ wall: () => this.#wallMs, steady: () => this.#steadyMs, uptime: () => this.#steadyMs });

  now(): number {
    return this.#time();
  }

  at(atMs: number, fn: () => void): () => void {
    const timer = { atMs, fn };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  /** Sets the wall clock ahead, or back. */
  set(byMs: number): void {
    this.#wallMs += byMs;
  }

  /** Lets this many seconds pass. `each` is called after every second. */
  async pass(seconds: number, each: () => Promise<void> = () => Promise.resolve()): Promise<void> {
    for (let second = 0; second < seconds; second++) {
      this.#wallMs += secondMs;
      this.#steadyMs += secondMs;
      const now = this.now();
      for (const timer of this.#timers) {
        if (timer.atMs > now || !this.#timers.delete(timer)) continue;
        timer.fn();
      }
      await new Promise((resolve) => setImmediate(resolve));
      await each();
    }
  }
}
