// Deadlines (of leases, delays, tasks and runs) are in one heap with one timer; `local-deadlines.ts` adds those of waits and runs when they
// come near. An entry is only a hint. The entry of a deadline that was moved fires too early; then `local-expiry.ts` finds that nothing is
// due.

import type { Clock } from "../../core/clock.ts";
import { Heap } from "./heap.ts";

interface Entry {
  at: number;
  id: string;
}

/** Maximum number of due ids in one call of `fire`, so that a burst of expiries does not block other work. */
const dueMax = 500;
/** Outdated entries are removed from the heap when there are at least `leftoversMin` of them, and this many for each valid entry. */
const leftoversFactor = 4;
const leftoversMin = 1_000;

export class Deadlines {
  #heap = newHeap();
  /** The valid entry of each id; other entries in the heap are leftovers. */
  readonly #pending = new Map<string, number>();
  readonly #clock: Clock;
  readonly #fire: (ids: string[]) => void;
  #cancel: (() => void) | null = null;
  #armedAt = Number.POSITIVE_INFINITY;
  #closed = false;

  /** `fire` receives ids whose time has come, and finds out what is really due. */
  constructor(clock: Clock, fire: (ids: string[]) => void) {
    this.#clock = clock;
    this.#fire = fire;
  }

  /** Makes sure that `id` fires at `at` or before. A deadline that moves later needs no call: it is found not due and added again. */
  add(id: string, at: number): void {
    const known = this.#pending.get(id);
    if (this.#closed || (known !== undefined && known <= at)) return;
    this.#pending.set(id, at);
    this.#heap.push({ at, id });
    if (at < this.#armedAt) this.#arm();
    if (known !== undefined) this.#boundLeftovers();
  }

  drop(id: string): void {
    this.#pending.delete(id);
    this.#boundLeftovers();
  }

  #boundLeftovers(): void {
    if (this.#heap.size > leftoversMin && this.#heap.size > leftoversFactor * this.#pending.size) this.#sweepOutLeftovers();
  }

  get size(): number {
    return this.#pending.size;
  }

  /** The number of entries, including leftovers. */
  get carried(): number {
    return this.#heap.size;
  }

  close(): void {
    this.#closed = true;
    this.#cancel?.();
    this.#cancel = null;
  }

  /** Tasks that end before their deadline leave entries behind; a busy server must not keep a day's worth of them. */
  #sweepOutLeftovers(): void {
    this.#heap = newHeap();
    for (const [id, at] of this.#pending) this.#heap.push({ at, id });
    this.#arm();
  }

  #arm(): void {
    this.#cancel?.();
    this.#cancel = null;
    const top = this.#heap.peek();
    this.#armedAt = top?.at ?? Number.POSITIVE_INFINITY;
    if (top !== undefined) this.#cancel = this.#clock.at(top.at, () => this.#sweep());
  }

  #sweep(): void {
    if (this.#closed) return;
    const now = this.#clock.now();
    const due = new Set<string>();
    for (let top = this.#heap.peek(); top !== undefined && top.at <= now && due.size < dueMax; top = this.#heap.peek()) {
      this.#heap.pop();
      if (this.#pending.get(top.id) !== top.at) continue;
      this.#pending.delete(top.id);
      due.add(top.id);
    }
    this.#arm();
    if (due.size > 0) this.#fire([...due]);
  }
}

function newHeap(): Heap<Entry> {
  return new Heap((a, b) => a.at < b.at);
}
