// Leaves out edges that say nothing new: where a longer way leads from one node to the other, the direct edge only crosses it.

/** Larger graphs keep all edges: the search would take too long. */
const nodesMax = 500;

/** The places of the edges that stay. */
export function withoutShortcuts(count: number, edges: readonly (readonly [from: number, to: number])[]): number[] {
  const all = edges.map((_edge, at) => at);
  if (count > nodesMax) return all;
  const next: number[][] = Array.from({ length: count }, () => []);
  for (const [from, to] of edges) next[from]?.push(to);
  return all.filter((at) => {
    const [from, to] = edges[at] as readonly [number, number];
    return !(next[from] ?? []).some((middle) => middle !== to && leads(next, middle, to));
  });
}

function leads(next: readonly (readonly number[])[], from: number, to: number): boolean {
  const seen = new Set([from]);
  const stack = [from];
  for (let node = stack.pop(); node !== undefined; node = stack.pop()) {
    if (node === to) return true;
    for (const one of next[node] ?? []) {
      if (seen.has(one)) continue;
      seen.add(one);
      stack.push(one);
    }
  }
  return false;
}
