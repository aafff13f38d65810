// A heap whose entries take turns: in a round, each run (or other value of `turnOf`) gets one entry. So a run with thousands of entries
// delays another run by only one. The entries of one run keep their order.
//
// An entry gets the number of its round when it is pushed: one after the last entry of its run, but not before the current round. A run is
// forgotten with its last entry.

import { Heap } from "./heap.ts";

interface Entry<T> {
  readonly item: T;
  readonly turn: string;
  readonly round: number;
}

interface Turn {
  /** The round of its last entry. */
  last: number;
  entries: number;
}

export interface TurnHeapOptions<T> {
  turnOf(item: T): string;
  /** The priority of an entry, which comes before its turn: smaller first. */
  priorityOf(item: T): number;
  /** The order in one round. */
  before(a: T, b: T): boolean;
}

export class TurnHeap<T> {
  readonly #heap: Heap<Entry<T>>;
  readonly #turnOf: (item: T) => string;
  readonly #turns = new Map<string, Turn>();
  /** The latest round from which an entry was taken. */
  #round = 0;

  constructor({ turnOf, priorityOf, before }: TurnHeapOptions<T>) {
    this.#turnOf = turnOf;
    this.#heap = new Heap((a, b) => {
      const [first, second] = [priorityOf(a.item), priorityOf(b.item)];
      if (first !== second) return first < second;
      return a.round < b.round || (a.round === b.round && before(a.item, b.item));
    });
  }

  get size(): number {
    return this.#heap.size;
  }

  peek(): T | undefined {
    return this.#heap.peek()?.item;
  }

  push(item: T): void {
    const turn = this.#turnOf(item);
    const known = this.#turns.get(turn);
    const round = Math.max(this.#round, known?.last ?? 0) + 1;
    this.#turns.set(turn, { last: round, entries: (known?.entries ?? 0) + 1 });
    this.#heap.push({ item, turn, round });
  }

  pop(): T | undefined {
    const entry = this.#heap.pop();
    if (entry === undefined) return undefined;
    const turn = this.#turns.get(entry.turn) as Turn;
    if (--turn.entries === 0) this.#turns.delete(entry.turn);
    this.#round = Math.max(this.#round, entry.round);
    return entry.item;
  }

  /** Returns the first `count` entries in order, without removing them. */
  next(count: number): T[] {
    return this.#heap.next(count).map(({ item }) => item);
  }

  /** In no particular order. */
  *values(): Generator<T, void, void> {
    for (const { item } of this.#heap.values()) yield item;
  }
}
