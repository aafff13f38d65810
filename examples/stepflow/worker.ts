// Components for Stepflow's flows: `longshore dev` is an orchestrator. `longshore work` finds them by their exports.

import { TerminalError, task } from "longshore";

const grams: Record<string, number> = { lantern: 850, rope: 400 };

export const weigh = task("weigh", async ({ item, count }: { item: string; count: number }, ctx) => {
  const each = grams[item];
  // Trying again would not help.
  if (each === undefined) throw new TerminalError(`there is no ${item} in stock`);
  ctx.log(`${count} x ${item}`);
  return { grams: each * count };
});

// Not async: it runs in a thread, and may compute as long as it likes.
export const price = task("price", ({ grams }: { grams: number }) => ({ cents: 300 + Math.ceil(grams / 100) * 25 }));
