// What takes part in commits, in the order in which it is written. There are some dozens, of which a small commit touches two or three:
// the others are passed over without a call.

import type { Tx } from "./tx.ts";

/** What a batch has changed; implemented by `Rows` and `Additions`. */
export interface Writable {
  /** True when something has to be written. */
  readonly dirty: boolean;
  /** Called in every transaction in which it takes part, dirty or not: what can wait is written along. */
  write(tx: Tx): void;
  /** The batch is over. What is still pending is durable: what failed was taken back before. */
  applied(): void;
}

interface Place {
  readonly writable: Writable;
  readonly isAlwaysAsked: boolean;
  isTouched: boolean;
}

export class Writables {
  readonly #places: Place[] = [];

  /** Takes part in every commit from now on. */
  add(writable: Writable): void {
    this.#places.push({ writable, isAlwaysAsked: true, isTouched: true });
  }

  /** Takes part in the commits of batches that touch it, which the function that is returned notes. */
  addWhenTouched(writable: Writable): () => void {
    const place: Place = { writable, isAlwaysAsked: false, isTouched: false };
    this.#places.push(place);
    return () => {
      place.isTouched = true;
    };
  }

  get dirty(): boolean {
    for (const { isTouched, writable } of this.#places) if (isTouched && writable.dirty) return true;
    return false;
  }

  write(tx: Tx): void {
    for (const { isTouched, writable } of this.#places) if (isTouched) writable.write(tx);
  }

  applied(): void {
    for (const place of this.#places) {
      if (!place.isTouched) continue;
      // Before the call: it may note that something is left to be written along.
      place.isTouched = place.isAlwaysAsked;
      place.writable.applied();
    }
  }
}
