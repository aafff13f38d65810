// Tasks that wait for room under a limit key. Those of one lane that need the same room are alike, so when room is free it is enough that
// the first of them tries: a thousand that wait cost no more than one.

import { Heap } from "./heap.ts";
import { goesBefore, type Place } from "./lanes.ts";

export class Parking {
  readonly #places = new Heap<Place>(goesBefore);
  /** What is really parked; an entry of the heap whose sequence is not here means nothing. */
  readonly #sequences = new Map<string, number>();

  get size(): number {
    return this.#sequences.size;
  }

  add(place: Place): void {
    if (this.#sequences.get(place.id) === place.sequence) return;
    this.#sequences.set(place.id, place.sequence);
    this.#places.push(place);
  }

  remove({ id, sequence }: Place): void {
    if (this.#sequences.get(id) === sequence) this.#sequences.delete(id);
  }

  has({ id, sequence }: Place): boolean {
    return this.#sequences.get(id) === sequence;
  }

  /** Takes out the first. */
  next(): Place | undefined {
    for (let place = this.#places.pop(); place !== undefined; place = this.#places.pop()) {
      if (this.#sequences.get(place.id) !== place.sequence) continue;
      this.#sequences.delete(place.id);
      return place;
    }
    return undefined;
  }
}
