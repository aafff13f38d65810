// The few statistics the benchmarks need. Every figure is a median over rounds, never a mean: one stall must not decide.

export function quantile(values: readonly number[], q: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = [...values].sort((a, b) => a - b);
  const position = (sorted.length - 1) * q;
  const low = sorted[Math.floor(position)] as number;
  const high = sorted[Math.ceil(position)] as number;
  return low + (high - low) * (position - Math.floor(position));
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** A ratio is computed for each round, between two measurements that follow each other. The median of these ratios is reported. */
export interface Ratio {
  readonly median: number;
  readonly lowest: number;
  readonly highest: number;
}

export function ratioByRound(numerators: readonly number[], denominators: readonly number[]): Ratio {
  const ratios = numerators.map((value, round) => value / (denominators[round] as number));
  return { median: median(ratios), lowest: Math.min(...ratios), highest: Math.max(...ratios) };
}
