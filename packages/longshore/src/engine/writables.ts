// The participants of commits, in the order in which they are written. There are some dozens, and a small commit touches two or three of
// them: the others are skipped without a call.

import type { Tx } from "./tx.ts";

/** A participant of a commit, such as `Rows` and `Additions`. */
export interface Writable {
  /** True when something has to be written. */
  readonly dirty: boolean;
  /** Called in every transaction that includes it, dirty or not, because it may have deferred changes. */
  write(tx: Tx): void;
  /** The batch has ended. What is still pending is durable: failed changes were undone before. */
  applied(): void;
}

interface Place {
  readonly writable: Writable;
  readonly isAlwaysAsked: boolean;
  isTouched: boolean;
}

export class Writables {
  readonly #places: Place[] = [];

  /** Includes `writable` in every commit from now on. */
  add(writable: Writable): void {
    this.#places.push({ writable, isAlwaysAsked: true, isTouched: true });
  }

  /** Includes `writable` in the commits of batches that touch it. The returned function marks it as touched. */
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
      // Reset before the call, because `applied` may mark it again when something is left to write.
      place.isTouched = place.isAlwaysAsked;
      place.writable.applied();
    }
  }
}
