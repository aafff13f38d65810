// The end of something that talks to brokers. A broker that is there responds in milliseconds and is waited for; one that is away must not
// delay the end: soon after that has begun, nothing more is waited for.

import { closeMsMax } from "./client.ts";

export class Shutdown {
  readonly #begun = new AbortController();
  readonly #late = new AbortController();

  /** Nothing new is begun from here. */
  get begun(): AbortSignal {
    return this.#begun.signal;
  }

  /** Open requests to a broker are given up. */
  get late(): AbortSignal {
    return this.#late.signal;
  }

  /** Begins the end; resolves with it. Holds the process open for as long. May be called twice. */
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
