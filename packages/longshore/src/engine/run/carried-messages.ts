// Lets a caller wait for messages between runs. They are carried out after the transaction that leaves them, and a store on another machine
// takes some time for that: a caller that cancels a run must find its children cancelled, with any store.

import { type Clock, pause } from "../../core/clock.ts";

/** A caller goes on after this time: the messages are durable, and others may be before them. */
const waitMsMax = 1_000;
/** Children within children: each generation is told by a message of the one before. */
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

  /** What is left is not carried out for now. */
  stopped(): void {
    for (const { resolve } of this.#waiters) resolve();
  }

  /** Waits for the message with the id that `newest` returns, and for those that carrying it out leaves, while messages are carried out. */
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
