// Tasks that wait for room under a limit key. Tasks of one lane that need the same room form a group. When room is free, only the first
// task of a group tries: a thousand waiting tasks cost no more than one.

import { Heap } from "./heap.ts";
import { goesBefore, type Place } from "./lanes.ts";

export class ParkedTasks {
  readonly #places = new Heap<Place>(goesBefore);
  /** The parked tasks; a heap entry whose sequence is not here is outdated. */
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

  /** Removes and returns the first task. */
  next(): Place | undefined {
    for (let place = this.#places.pop(); place !== undefined; place = this.#places.pop()) {
      if (this.#sequences.get(place.id) !== place.sequence) continue;
      this.#sequences.delete(place.id);
      return place;
    }
    return undefined;
  }
}
