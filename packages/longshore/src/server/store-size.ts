// The size of the store, for metrics.

import type { Sample } from "../core/metrics.ts";
import type { StorePart } from "../engine/store.ts";

export class StoreSize {
  readonly #read: () => Promise<readonly StorePart[]>;
  #parts: readonly StorePart[] = [];
  #looking: Promise<void> | null = null;

  constructor(read: () => Promise<readonly StorePart[]>) {
    this.#read = read;
  }

  /** Never rejects. Concurrent readers share one measurement. */
  look(): Promise<void> {
    this.#looking ??= this.#lookNow().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  samples(): Sample[] {
    return this.#parts.map(({ part, bytes }) => ({ labels: [part], value: bytes }));
  }

  async #lookNow(): Promise<void> {
    try {
      this.#parts = await this.#read();
    } catch {
      // When the store does not respond, only this metric is missing, and not the others.
      this.#parts = [];
    }
  }
}
