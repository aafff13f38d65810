// Sorting in slices: two hundred thousand entries at once would block all requests for a tenth of a second.

import type { Slices } from "./slices.ts";

/** How many entries are sorted, and merged, at once. */
const pieceMax = 1_000;

/** Returns a sorted list; equal entries keep their order. */
export async function sortInSlices<Item>(
  items: readonly Item[],
  compare: (a: Item, b: Item) => number,
  slices: Pick<Slices, "turn">,
): Promise<Item[]> {
  let sorted: Item[][] = [];
  for (let at = 0; at < items.length; at += pieceMax) {
    await slices.turn(pieceMax);
    sorted.push(items.slice(at, at + pieceMax).sort(compare));
  }
  while (sorted.length > 1) {
    const merged: Item[][] = [];
    for (let at = 0; at < sorted.length; at += 2) merged.push(await merge(sorted[at] as Item[], sorted[at + 1] ?? [], compare, slices));
    sorted = merged;
  }
  return sorted[0] ?? [];
}

async function merge<Item>(
  left: Item[],
  right: Item[],
  compare: (a: Item, b: Item) => number,
  slices: Pick<Slices, "turn">,
): Promise<Item[]> {
  const merged: Item[] = [];
  let fromRight = 0;
  for (let fromLeft = 0; fromLeft < left.length || fromRight < right.length; ) {
    if (merged.length % pieceMax === 0) await slices.turn(pieceMax);
    const isLeft = fromRight === right.length || (fromLeft < left.length && compare(left[fromLeft] as Item, right[fromRight] as Item) <= 0);
    merged.push((isLeft ? left[fromLeft++] : right[fromRight++]) as Item);
  }
  return merged;
}
