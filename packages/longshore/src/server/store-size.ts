// The size of the store, for metrics.

import type { Sample } from "../core/metrics.ts";
import type { StoredSize } from "../engine/store.ts";

export class StoreSize {
  readonly #read: () => Promise<readonly StoredSize[]>;
  #sizes: readonly StoredSize[] = [];
  #looking: Promise<void> | null = null;

  constructor(read: () => Promise<readonly StoredSize[]>) {
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
    return this.#sizes.map(({ name, bytes }) => ({ labels: [name], value: bytes }));
  }

  async #lookNow(): Promise<void> {
    try {
      this.#sizes = await this.#read();
    } catch {
      // When the store does not respond, only this metric is missing, and not the others.
      this.#sizes = [];
    }
  }
}
