// Tells the owner which replies have reached their clients: it takes back what the others had granted. Those of one turn go together.

import type { CallOwner } from "./forwarder.ts";

export class Confirmations {
  readonly #owner: CallOwner;
  #delivered: string[] = [];
  #undelivered: string[] = [];
  #scheduled = false;

  constructor(owner: CallOwner) {
    this.#owner = owner;
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
      // When the link breaks, the owner takes back what is not confirmed; the next owner waits for the ends of the leases.
      this.#owner.call("confirm", { delivered, undelivered }, { repeat: false }).catch(() => {});
    });
  }
}
