// Sends progress values one at a time. While one is being sent, only the newest value waits; older ones are dropped.

import type { Json } from "../core/json/json.ts";

export class Progress {
  readonly #send: (value: Json) => Promise<void>;
  readonly #failing: (error: unknown) => void;
  #waiting: { readonly value: Json } | undefined;
  #busy = false;

  constructor(send: (value: Json) => Promise<void>, failing: (error: unknown) => void) {
    this.#send = send;
    this.#failing = failing;
  }

  tell(value: Json): void {
    this.#waiting = { value };
    if (!this.#busy) void this.#sendWaiting();
  }

  async #sendWaiting(): Promise<void> {
    this.#busy = true;
    while (this.#waiting !== undefined) {
      const { value } = this.#waiting;
      this.#waiting = undefined;
      // The next value replaces a lost one, so only the failure is reported.
      await this.#send(value).catch(this.#failing);
    }
    this.#busy = false;
  }
}
