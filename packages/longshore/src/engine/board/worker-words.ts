// The labels and names that are kept for a worker. Workers choose them, so their size is limited.

import type { Reach } from "./lanes.ts";

export interface Words {
  labels: readonly string[];
  reach: Reach | null;
  does: readonly string[] | null;
  /** Names of its earlier claims that are not in the newest claim, and when each was last claimed; the oldest first. */
  readonly polledAt: Map<string, number>;
}

/** Maximum number of names from successive claims of one worker. Above it, the oldest are removed. */
const polledMax = 1_000;
/** What a word counts besides its characters. */
const charsPerWord = 16;

/** Some workers claim one kind of task after the other: no single claim names all kinds. */
export function asks(worker: Words, reach: Reach, before: number): void {
  const { polledAt, reach: last } = worker;
  worker.reach = reach;
  if (last === null || sameNames(last.names, reach.names)) return;
  for (const name of last.names) {
    polledAt.delete(name);
    polledAt.set(name, before);
  }
  for (const name of reach.names) polledAt.delete(name);
  for (const name of polledAt.keys()) {
    if (polledAt.size <= polledMax) break;
    polledAt.delete(name);
  }
}

function sameNames(some: readonly string[], others: readonly string[]): boolean {
  return some === others || (some.length === others.length && some.every((name, at) => name === others[at]));
}

/** Whether the list is the same as before. An undefined list was not reported, and changes nothing. */
export function isSameList(before: readonly string[] | null, list: readonly string[] | undefined): boolean {
  return list === undefined || (before !== null && sameNames(before, list));
}

export function isSameReach(before: Reach | null, reach: Reach | undefined): boolean {
  return reach === undefined || (isSameList(before?.names ?? null, reach.names) && isSameList(before?.labels ?? null, reach.labels));
}

/** When the same list is stored twice, it counts twice; this wastes a little room. */
export function charsOf({ labels, reach, does, polledAt }: Words): number {
  let chars = 0;
  for (const words of [labels, reach?.names ?? [], reach?.labels ?? [], does ?? [], polledAt.keys()]) {
    for (const word of words) chars += word.length + charsPerWord;
  }
  return chars;
}
