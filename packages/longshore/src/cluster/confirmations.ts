// Tells the owner which replies have reached their clients: it takes back what the others had granted. Those of one turn go together.

import type { Clock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import type { CallOwner } from "./forwarder.ts";

/** The pause before confirmations are sent again for which the link had no room. */
const retryMs = 100;

export class Confirmations {
  readonly #owner: CallOwner;
  readonly #clock: Clock;
  #delivered: string[] = [];
  #undelivered: string[] = [];
  #scheduled = false;

  constructor(owner: CallOwner, clock: Clock) {
    this.#owner = owner;
    this.#clock = clock;
  }

  delivered(id: string): void {
    this.#delivered.push(id);
    this.#schedule();
  }

  undelivered(id: string): void {
    this.#undelivered.push(id);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      const [delivered, undelivered] = [this.#delivered, this.#undelivered];
      this.#delivered = [];
      this.#undelivered = [];
      // Sent again when the link breaks. The next owner knows nothing of them, and waits for the ends of the leases.
      this.#owner.call("confirm", { delivered, undelivered }).catch((error: unknown) => {
        if (!(error instanceof LongshoreError && error.code === "LONGSHORE_LIMIT")) return;
        // The link is full. The owner must hear it all the same.
        for (const id of delivered) this.#delivered.push(id);
        for (const id of undelivered) this.#undelivered.push(id);
        this.#clock.at(this.#clock.now() + retryMs, () => this.#schedule());
      });
    });
  }
}
