// Work that would hold the event loop for long, cut into slices: a generator that yields between them. It is done at once where it is known
// to be small, and else in turns, between which every other request is served. A slice is counted in items and not in time, so that a test
// can check the bound.

import { Slices, turnRows } from "./slices.ts";

export type Sliced<Result> = Generator<undefined, Result, undefined>;

/** Items of one slice: steps of a definition at up to 20 us each, so some milliseconds. */
export const sliceItems = 200;

export function atOnce<Result>(work: Sliced<Result>): Result {
  for (;;) {
    const { done, value } = work.next();
    if (done) return value;
  }
}

/** One for the process, as there is one event loop: however many definitions come at once, one slice is worked on in a turn. */
const definitions = new Slices();

/** Each slice but the first has a turn of the event loop for itself: what is small is done at once. */
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
