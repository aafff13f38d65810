// All claims with the same names and labels. Waiting claims form one queue, the longest waiting first.

import type { LabelSet } from "./lane-tree.ts";
import type { Lane } from "./task.ts";
import type { Waiter } from "./waiters.ts";

/** The names and labels of a claim. Labels that no lane mentions have no effect. */
export interface Reach {
  names: readonly string[];
  labels: readonly string[];
}

/**
 * `stands` is called when the first claim of a group starts to wait, and may throw to refuse the claim. `rests` is called when the last
 * claim has left.
 */
export interface GroupKeeper {
  stands(group: ClaimGroup): void;
  rests(group: ClaimGroup): void;
}

/** From this number of labels on, lookups use a set; for fewer, searching the array is faster. */
const setFrom = 8;

export class ClaimGroup {
  readonly key: string;
  readonly reach: Reach;
  usedAt = 0;
  readonly #keeper: GroupKeeper;
  readonly #line = new Set<Waiter>();
  /** Waiters that a failed transaction put back, the longest waiting last. They come before all of `#line`. */
  readonly #returned: Waiter[] = [];
  #labels: LabelSet | null = null;

  constructor(key: string, reach: Reach, keeper: GroupKeeper) {
    this.key = key;
    this.reach = reach;
    this.#keeper = keeper;
  }

  /** How many claims wait. */
  get size(): number {
    return this.#line.size + this.#returned.length;
  }

  get labels(): LabelSet {
    this.#labels ??= labelSet(this.reach.labels);
    return this.#labels;
  }

  /** Whether these claims have all labels of a lane. The caller has checked that its name is one of their names. */
  carries(lane: Lane): boolean {
    for (const label of lane.labels) if (!this.labels.has(label)) return false;
    return true;
  }

  first(): Waiter | undefined {
    return this.#returned.at(-1) ?? this.#line.values().next().value;
  }

  join(waiter: Waiter): void {
    if (this.size === 0) this.#keeper.stands(this);
    this.#line.add(waiter);
  }

  /** Puts a waiter back before those that arrived later. */
  rejoin(waiter: Waiter): void {
    if (this.size === 0) this.#keeper.stands(this);
    const behind = this.#returned.findLastIndex(({ arrival }) => arrival > waiter.arrival);
    this.#returned.splice(behind + 1, 0, waiter);
  }

  leave(waiter: Waiter): void {
    if (!this.#line.delete(waiter)) {
      const at = this.#returned.lastIndexOf(waiter);
      if (at < 0) return;
      this.#returned.splice(at, 1);
    }
    if (this.size === 0) this.#keeper.rests(this);
  }
}

function labelSet(labels: readonly string[]): LabelSet {
  if (labels.length >= setFrom) return new Set(labels);
  return { size: labels.length, has: (label) => labels.includes(label), [Symbol.iterator]: () => labels[Symbol.iterator]() };
}
