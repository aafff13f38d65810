// Requests that arrive while all slots are taken. HTTP pushes work to a worker whether or not it has a free slot, so requests wait here in
// order for a limited time. They are refused when that time is over or too many wait; the runtime may then try another worker.

import type { Slot, TransportHost } from "../../../../runner/transport.ts";
import type { Exchange } from "./exchange.ts";

/** Maximum number of waiting requests. Each holds a connection and its body. */
const waitingMax = 1_000;
/** Maximum number of characters of all waiting bodies. */
const waitingCharsMax = 256 * 1024 * 1024;

export class RequestQueue {
  readonly #host: Pick<TransportHost, "slots" | "clock" | "draining">;
  readonly #waitMs: number;
  #waiting = 0;
  #chars = 0;
  #onEmpty: (() => void)[] = [];

  constructor(host: Pick<TransportHost, "slots" | "clock" | "draining">, waitMs: number) {
    this.#host = host;
    this.#waitMs = waitMs;
  }

  /** Undefined when the queue is full, no slot becomes free in time, the caller disconnects or the worker drains. */
  async slot(exchange: Exchange, chars: number): Promise<Slot | undefined> {
    const [free] = this.#host.slots.takeFree(1);
    if (free !== undefined) return free;
    if (this.#waiting >= waitingMax || this.#chars + chars > waitingCharsMax) return undefined;
    const { clock, slots } = this.#host;
    const timeLimit = new AbortController();
    const leave = exchange.onGone(() => timeLimit.abort("The caller has disconnected."));
    const disarm = clock.at(clock.now() + this.#waitMs, () => timeLimit.abort("It took too long."));
    this.#waiting++;
    this.#chars += chars;
    try {
      return await slots.take(timeLimit.signal);
    } finally {
      leave();
      disarm();
      this.#chars -= chars;
      this.#waiting--;
      if (this.#waiting === 0) for (const tell of this.#onEmpty.splice(0)) tell();
    }
  }

  /** Resolves when no request waits. */
  empty(): Promise<void> {
    if (this.#waiting === 0) return Promise.resolve();
    return new Promise((resolve) => this.#onEmpty.push(resolve));
  }
}
