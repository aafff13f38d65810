// A workflow in code. References between steps are typed: `reserved.shlef` does not compile. `longshore work` finds the tasks of this
// file by its exports, `longshore define` its workflow.

import { graph, type Ref, TerminalError, task } from "longshore";

interface Order {
  item: string;
  count: number;
}

const shelves: Record<string, string> = { lantern: "B7", rope: "C1" };

export const reserve = task("reserve", async ({ item, count }: Order, ctx) => {
  const shelf = shelves[item];
  // Trying again would not help.
  if (shelf === undefined) throw new TerminalError(`there is no ${item} in stock`);
  ctx.log(`${count} x ${item} on shelf ${shelf}`);
  return { shelf };
});

export const charge = task("charge", async ({ count }: { count: number }, ctx) => {
  // Banks are busy at times: the first try fails, the retry policy of the step brings another.
  if (ctx.attempt === 1) throw new Error("the bank did not answer");
  return { paid: count * 19.5 };
});

export const ship = task("ship", async ({ shelf, paid }: { shelf: string; paid: number }) => ({ shipped: `from ${shelf}, ${paid} paid` }));

export const order = graph("order", (g, input: Ref<Order>) => {
  const reserved = g.step(reserve, input);
  const charged = g.step(charge, { count: input.count }, { retry: { limit: 2, backoff: { kind: "fixed", delayMs: 200 } } });
  return g.step(ship, { shelf: reserved.shelf, paid: charged.paid });
});
