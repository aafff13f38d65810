// Lengths of time as people type them.

/** `5m` and `2h` as milliseconds; undefined for another text. */
export function parseSpan(text: string): number | undefined {
  const found = /^(\d{1,9})(s|m|h|d)$/.exec(text);
  if (found === null) return undefined;
  const factors: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
  return Number(found[1]) * (factors[found[2] as string] as number);
}
