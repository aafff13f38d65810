// The caller of the current request, known in all functions from the request to the transaction. So the audit has the orders of every
// protocol, and no function needs a parameter for the caller.

import { AsyncLocalStorage } from "node:async_hooks";

/** The sender of an order. */
export interface Orderer {
  /** The name of the token; null without one. */
  readonly name: string | null;
  /** How the order arrived: the route or method, `program`, or `bulk` with the id of the job and its step, if it has one. */
  readonly via: string;
}

/** The program that the server runs in. */
export const byProgram: Orderer = { name: null, via: "program" };

export class Orderers {
  readonly #current = new AsyncLocalStorage<Orderer>();
  #within = 0;

  /** Performs `work` as an order of this caller. */
  async within<T>(orderer: Orderer, work: () => T | Promise<T>): Promise<T> {
    this.#within++;
    try {
      return await this.#current.run(orderer, work);
    } finally {
      // Up to Node 22, every promise of the process costs more while a storage is enabled. `run` enables it again.
      if (--this.#within === 0) this.#current.disable();
    }
  }

  readonly current = (): Orderer | undefined => this.#current.getStore();
}
