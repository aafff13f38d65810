// Work on each of many items for which no caller waits, such as ending the requests of a lost connection.

/** Calls `each` for the first items now, and for the others in later turns of the event loop, `atOnce` in each. It must not throw. */
export function inLaterTurns<Item>(items: readonly Item[], atOnce: number, each: (item: Item) => void, from = 0): void {
  const end = from + atOnce;
  for (const item of items.slice(from, end)) each(item);
  if (end < items.length) setImmediate(() => inLaterTurns(items, atOnce, each, end));
}
