// The pull requests of a worker that wait at the NATS server, each for as many messages as it has slots. This uses JetStream's pull
// protocol directly: a request is one published message, and all answers arrive on one subscription. The client library's `fetch` makes a
// subscription for each request: it was measured at 221 us a message. Its `consume` takes only 17 us, but receives more messages than there
// are slots.
//
// A request ends in one of three ways: it has received all its messages, the server ends it (408 after its time, 409 and 503 for errors),
// or a local timeout ends it because the server has lost it. A message does not name its request. The server serves the oldest request
// first, so messages are counted here.

import type { Clock } from "../../../../core/clock.ts";
import type { Slot } from "../../../../runner/transport.ts";

export interface PullsOptions<Message> {
  readonly clock: Clock;
  /** Sends a request. Its status messages contain `id`. */
  readonly request: (id: number, batch: number, expiresMs: number) => void;
  readonly deliver: (message: Message, slot: Slot) => void;
  /** Called with a message that has no slot. */
  readonly surplus: (message: Message) => void;
  /** How long a request waits at the server. */
  readonly expiresMs: number;
}

/** How long after its time the server may take to end a request. */
const graceMs = 5_000;
/** A server normally lets requests wait. If it ends one earlier than this without a message, the worker pauses before the next request. */
const earlyMs = 1_000;

interface Pull {
  readonly slots: Slot[];
  readonly endMs: number;
  /** Whether it has received a message. */
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

  /** The server sends nothing more for this request. Returns true when it sent no message at all and ended the request early. */
  end(id: number): boolean {
    const pull = this.#open.get(id);
    if (pull === undefined) return false;
    this.#open.delete(id);
    for (const slot of pull.slots.splice(0)) slot.release();
    const { clock, expiresMs } = this.#options;
    const waitedMs = clock.now() - (pull.endMs - graceMs - expiresMs);
    return !pull.filled && waitedMs < Math.min(earlyMs, expiresMs / 2);
  }

  endAll(): void {
    for (const id of [...this.#open.keys()]) this.end(id);
    this.#disarm?.();
    this.#disarm = undefined;
  }

  /** One timer for all requests: they end in the order in which they began. */
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
