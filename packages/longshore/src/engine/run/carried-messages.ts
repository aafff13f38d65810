// Lets a caller wait for messages between runs. Messages are carried out after the transaction that stores them, which takes some time with
// a store on another machine. But with any store, a caller that cancels a run must then find its child runs cancelled.

import { type Clock, pause } from "../../core/clock.ts";

/** A caller goes on after this time: the messages are durable, and others may be before them. */
const waitMsMax = 1_000;
/** Maximum number of generations of child runs: each gets its messages from the one before. */
const generationsMax = 16;

interface Waiter {
  readonly upTo: number;
  readonly resolve: () => void;
}

export class CarriedMessages {
  readonly #clock: Clock;
  readonly #waiters = new Set<Waiter>();
  #upTo = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Messages are carried out in the order of their ids. */
  reached(id: number): void {
    this.#upTo = Math.max(this.#upTo, id);
    for (const waiter of this.#waiters) if (waiter.upTo <= id) waiter.resolve();
  }

  /** The remaining messages are not carried out for now. */
  stopped(): void {
    for (const { resolve } of this.#waiters) resolve();
  }

  /**
   * Waits for the message with the id that `newest` returns, and for the messages that it causes. Does not wait while no messages are being
   * carried out.
   */
  async wait(newest: () => number, isCarrying: () => boolean): Promise<void> {
    const given = this.#clock.now() + waitMsMax;
    for (let generation = 0; generation < generationsMax; generation++) {
      const upTo = newest();
      if (upTo <= this.#upTo || this.#clock.now() >= given || !isCarrying()) return;
      await this.#waitFor(upTo, given);
    }
  }

  async #waitFor(upTo: number, until: number): Promise<void> {
    const enough = new AbortController();
    const waiter = { upTo, resolve: () => enough.abort() };
    this.#waiters.add(waiter);
    await pause(this.#clock, until - this.#clock.now(), enough.signal);
    this.#waiters.delete(waiter);
  }
}
