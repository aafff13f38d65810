// Tasks for any Conductor server: `longshore dev` is one. `longshore work` finds them by their exports.

import { TerminalError, task } from "longshore";

const shelves: Record<string, string> = { lantern: "B7", rope: "C1" };

export const pick = task("pick", async ({ item }: { item: string }, ctx) => {
  const shelf = shelves[item];
  // Trying again would not help.
  if (shelf === undefined) throw new TerminalError(`there is no ${item} in stock`);
  ctx.log(`${item} is on shelf ${shelf}`);
  return { shelf };
});

// Not async: it runs in a thread, and may compute as long as it likes.
export const weigh = task("weigh", ({ count }: { count: number }) => ({ grams: count * 850 }));
