// Lets a caller wait until messages between runs have been carried out. This happens after the transaction that stores the messages, and
// takes some time when the store is on another machine. But when the call that cancels a run returns, its child runs should be cancelled.

import { type Clock, pause } from "../../core/clock.ts";

/** The maximum wait of a caller. Older messages may delay the ones that it waits for. They are durable, so they are carried out later. */
const waitMsMax = 1_000;
/** Maximum number of generations of child runs to wait for. Each generation sends messages to the next one. */
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
