// A clock that does not move until a test moves it.

import type { Clock } from "../core/clock.ts";

interface Timer {
  readonly atMs: number;
  readonly order: number;
  readonly fn: () => void;
}

/** When more timers than this fire in one `advance`, a timer probably sets itself again for the same time without end. */
const firingsMax = 1_000_000;
/** Turns of the event loop between two timers of `until`: several times what a step of a run in the same process needs. */
const turnsBetween = 20;

/** A clock that moves only when the test moves it. */
export class TestClock implements Clock {
  #nowMs: number;
  #order = 0;
  #timers = new Set<Timer>();
  #watchers = new Set<() => void>();

  /** The default start is a round date in the past, so that a real date in a test is obvious. */
  constructor(startMs: number = Date.UTC(2020, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  at(atMs: number, fn: () => void): () => void {
    const timer = { atMs, order: this.#order++, fn };
    this.#timers.add(timer);
    for (const watcher of [...this.#watchers]) watcher();
    return () => this.#timers.delete(timer);
  }

  /** The number of pending timers. */
  get pending(): number {
    return this.#timers.size;
  }

  /** When the next timer is due. */
  get nextAtMs(): number | undefined {
    return this.#next()?.atMs;
  }

  /**
   * Moves time forward and fires the timers that are due, in order of time and then of creation. Each timer runs at its own time. After
   * each timer, promises and immediates get a turn: they may create timers that are also due. Does not wait for I/O.
   */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms;
    await this.turn();
    for (let firings = 0; ; firings++) {
      if (firings > firingsMax)
        throw new Error(`More than ${firingsMax} timers fired within one advance: one of them sets itself again for the current time.`);
      const next = this.#next();
      if (next === undefined || next.atMs > untilMs) break;
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.atMs);
      next.fn();
      await this.turn();
    }
    this.#nowMs = Math.max(this.#nowMs, untilMs);
  }

  /**
   * Moves time from timer to timer until the promise settles, and returns its result: `await clock.until(run.result())` ends at once for a
   * run that sleeps for days. Between two timers, promises and immediates get turns of the event loop. Does not wait for I/O: while a
   * handler waits for a file or the network, time continues, and its timeouts may fire.
   */
  async until<Result>(promise: Promise<Result>): Promise<Result> {
    let isSettled = false;
    const settled = () => {
      isSettled = true;
    };
    promise.then(settled, settled);
    for (let firings = 0; ; firings++) {
      for (let turn = 0; turn < turnsBetween && !isSettled; turn++) await this.turn();
      if (isSettled) return promise;
      if (firings > firingsMax) throw new Error(`More than ${firingsMax} timers fired, and the promise has not settled.`);
      const next = this.#next();
      if (next !== undefined) await this.advance(Math.max(0, next.atMs - this.#nowMs));
    }
  }

  /** Moves time forward without firing timers, as when the event loop is blocked. The next `advance` fires what is overdue. */
  jump(ms: number): void {
    this.#nowMs += ms;
  }

  /**
   * Resolves when at least `count` timers are pending that are due within `withinMs` from now. For code that sets its timer after real I/O.
   */
  armed(withinMs: number, count = 1): Promise<void> {
    const ready = () => [...this.#timers].filter((timer) => timer.atMs <= this.#nowMs + withinMs).length >= count;
    if (ready()) return Promise.resolve();
    return new Promise((resolve) => {
      const watcher = () => {
        if (!ready()) return;
        this.#watchers.delete(watcher);
        resolve();
      };
      this.#watchers.add(watcher);
    });
  }

  /** One turn of the event loop, for the code that a timer has woken. */
  protected turn(): Promise<void> {
    return new Promise((resolve) => setImmediate(resolve));
  }

  #next(): Timer | undefined {
    let next: Timer | undefined;
    for (const timer of this.#timers) {
      if (next === undefined || timer.atMs < next.atMs || (timer.atMs === next.atMs && timer.order < next.order)) next = timer;
    }
    return next;
  }
}
