// Stops a client of Kafka brokers. A reachable broker responds in milliseconds, so the stop waits for it. A broker that is down must not
// delay the stop: after `closeMsMax`, open requests are cancelled.

import { closeMsMax } from "./client.ts";

export class Shutdown {
  readonly #begun = new AbortController();
  readonly #late = new AbortController();

  /** Aborts when the stop begins: start nothing new. */
  get begun(): AbortSignal {
    return this.#begun.signal;
  }

  /** Aborts when the time is over: cancel open requests. */
  get late(): AbortSignal {
    return this.#late.signal;
  }

  /** Begins the stop and waits for `ended`. Keeps the process alive until then. May be called twice. */
  async until(ended: () => Promise<unknown>): Promise<void> {
    this.#begun.abort();
    const timer = setTimeout(() => this.#late.abort(), closeMsMax);
    try {
      await ended();
    } finally {
      clearTimeout(timer);
    }
  }
}
