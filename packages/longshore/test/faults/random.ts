// Seeded choices, so that a schedule of faults can be played again from the number that was printed.

export interface Random {
  /** In [0, 1). */
  next(): number;
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number;
  chance(probability: number): boolean;
  pick<T>(among: readonly T[]): T | undefined;
}

export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  // The mulberry32 recurrence: 32 bits of state are plenty for a few thousand choices.
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (low, high) => low + Math.floor(next() * (high - low + 1)),
    chance: (probability) => next() < probability,
    pick: (among) => among[Math.floor(next() * among.length)],
  };
}
