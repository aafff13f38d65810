// Work that would block the event loop for long, cut into slices: a generator that yields between them. `atOnce` runs small work without a
// pause. `inTurns` spreads the slices over turns of the event loop, and the server handles other requests between these turns. A slice is
// counted in items and not in time, so that a test can check the bound.

import { Slices, turnRows } from "./slices.ts";

export type Sliced<Result> = Generator<undefined, Result, undefined>;

/** The items of one slice: steps of a definition at up to 20 us each, so some milliseconds in all. */
export const sliceItems = 200;

export function atOnce<Result>(work: Sliced<Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** One for the process, because it has one event loop. */
const definitions = new Slices();

/** Begins at once. Before each further slice it waits until a turn of the event loop has room for the slice. */
export async function inTurns<Result>(work: Sliced<Result>, slices: Slices = definitions): Promise<Result> {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
    await slices.turn(turnRows);
  }
}

export function* eachInSlices<Item>(items: readonly Item[], each: (item: Item, at: number) => void): Sliced<void> {
  for (let at = 0; at < items.length; at++) {
    if (at % sliceItems === sliceItems - 1) yield;
    each(items[at] as Item, at);
  }
}

export function* mapInSlices<Item, Result>(items: readonly Item[], map: (item: Item, at: number) => Result): Sliced<Result[]> {
  const results: Result[] = [];
  yield* eachInSlices(items, (item, at) => results.push(map(item, at)));
  return results;
}
