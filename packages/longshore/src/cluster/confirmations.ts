// Reports to the owner which replies have reached their clients and which have not. When a reply has not reached its client, the owner
// takes back what the reply granted. The confirmations of one turn of the event loop are sent in one call.

import type { Clock } from "../core/clock.ts";
import { LongshoreError } from "../core/errors.ts";
import type { CallOwner } from "./forwarder.ts";

/** When the link had no room for confirmations, they are sent again after this pause. */
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
      // The link sends this call again when it breaks. An owner that has taken over does not know these replies: the tasks that they
      // granted return when their leases end.
      this.#owner.call("confirm", { delivered, undelivered }).catch((error: unknown) => {
        if (!(error instanceof LongshoreError && error.code === "LONGSHORE_LIMIT")) return;
        // The link is full, so the confirmations are sent later.
        for (const id of delivered) this.#delivered.push(id);
        for (const id of undelivered) this.#undelivered.push(id);
        this.#clock.at(this.#clock.now() + retryMs, () => this.#schedule());
      });
    });
  }
}
