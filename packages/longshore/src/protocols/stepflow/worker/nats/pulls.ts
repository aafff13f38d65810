// The pull requests of a worker that wait at the NATS server, each for as many messages as it has slots for. JetStream's pull protocol,
// spoken directly: a request is one published message, and all answers come to one subscription. The client library's own `fetch` makes a
// subscription for each request, which was measured at 221 us a message against 17 us of its `consume`; that one in turn takes more
// messages than there are slots.
//
// A request ends when it has brought all its messages, when the server ends it (408 after its time, 409 and 503 for errors), or by
// itself when the server has forgotten it. Messages do not name the request they answer; the server serves the oldest first, and so they
// are counted here.

import type { Clock } from "../../../../core/clock.ts";
import type { Slot } from "../../../../runner/transport.ts";

export interface PullsOptions<Message> {
  readonly clock: Clock;
  /** Sends a request; its answers name `id`. */
  readonly request: (id: number, batch: number, expiresMs: number) => void;
  readonly deliver: (message: Message, slot: Slot) => void;
  /** A message came that has no slot. */
  readonly surplus: (message: Message) => void;
  /** How long a request waits at the server. */
  readonly expiresMs: number;
}

/** The server's own word should have come by then. */
const graceMs = 5_000;
/** A server lets requests wait. One that ends them sooner, without a message, is not to be called again at once. */
const earlyMs = 1_000;

interface Pull {
  readonly slots: Slot[];
  readonly endMs: number;
  /** Whether it has brought a message. */
  filled: boolean;
}

export class Pulls<Message> {
  readonly #options: PullsOptions<Message>;
  /** The oldest first. */
  readonly #open = new Map<number, Pull>();
  #nextId = 0;
  #disarm: (() => void) | undefined;

  constructor(options: PullsOptions<Message>) {
    this.#options = options;
  }

  /** Requests one message for each slot. */
  open(slots: readonly Slot[]): void {
    const { clock, request, expiresMs } = this.#options;
    const id = this.#nextId++;
    this.#open.set(id, { slots: [...slots], endMs: clock.now() + expiresMs + graceMs, filled: false });
    request(id, slots.length, expiresMs);
    this.#arm();
  }

  receive(message: Message): void {
    for (const [id, pull] of this.#open) {
      const { slots } = pull;
      const slot = slots.pop() as Slot;
      pull.filled = true;
      if (slots.length === 0) this.#open.delete(id);
      return this.#options.deliver(message, slot);
    }
    this.#options.surplus(message);
  }

  /** The server will bring nothing more for this request. True when it brought nothing at all, and ended long before its time. */
  end(id: number): boolean {
    const pull = this.#open.get(id);
    if (pull === undefined) return false;
    this.#open.delete(id);
    for (const slot of pull.slots.splice(0)) slot.release();
    const { clock, expiresMs } = this.#options;
    const waitedMs = clock.now() - (pull.endMs - graceMs - expiresMs);
    return !pull.filled && waitedMs < Math.min(earlyMs, expiresMs / 2);
  }

  /** None of them will bring anything any more. */
  endAll(): void {
    for (const id of [...this.#open.keys()]) this.end(id);
    this.#disarm?.();
    this.#disarm = undefined;
  }

  /** One timer for all of them: they end in the order in which they began. */
  #arm(): void {
    if (this.#disarm !== undefined) return;
    const [first] = this.#open.values();
    if (first === undefined) return;
    this.#disarm = this.#options.clock.at(first.endMs, () => {
      this.#disarm = undefined;
      const now = this.#options.clock.now();
      for (const [id, { endMs }] of [...this.#open]) if (endMs <= now) this.end(id);
      this.#arm();
    });
  }
}
