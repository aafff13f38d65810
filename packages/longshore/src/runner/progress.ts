// Sends progress values one at a time. While one is on its way only the newest waits: progress that was overtaken is of no use.

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
      // A lost progress value is replaced by the next one; only the failure itself is worth a report.
      await this.#send(value).catch(this.#failing);
    }
    this.#busy = false;
  }
}
