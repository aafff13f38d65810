// The sample's handlers. `longshore demo` runs them in a separate process, over HTTP, like any worker: `longshore work
// dist/cli/sample/tasks.js --on URL`.

import { setTimeout as sleep } from "node:timers/promises";
import type { Context } from "../../core/context.ts";
import { task } from "../../core/task.ts";

export interface Order {
  customer: string;
  items: { name: string; count: number; price: number }[];
}

export const price = task("price-order", async (order: Order, ctx) => {
  await pretend(ctx, 500, [`${order.items.length} items of ${order.customer}`]);
  const total = order.items.reduce((sum, item) => sum + item.count * item.price, 0);
  ctx.log(`total ${total.toFixed(2)}`);
  return { total };
});

export const checkAddress = task("check-address", async ({ customer }: { customer: string }, ctx) => {
  await pretend(ctx, 700, [`looking up ${customer}`, "found"]);
  return { street: "1 Harbour Street" };
});

export const reserve = task("reserve-stock", async ({ items }: Pick<Order, "items">, ctx) => {
  for (const item of items) await pretend(ctx, 500, [`${item.count} x ${item.name} reserved`]);
  return { shelf: "B7" };
});

/** Fails the first time, as banks do: the server retries it. */
export const charge = task("charge-card", async ({ total }: { total: number }, ctx) => {
  await pretend(ctx, 700, [`asking the bank for ${total.toFixed(2)}`]);
  if (ctx.attempt === 1) {
    ctx.log("no answer", "stderr");
    throw new Error("the bank did not answer");
  }
  ctx.log("paid");
  return { receipt: "R-1042" };
});

export const label = task("print-label", async ({ street }: { street: string }, ctx) => {
  await pretend(ctx, 600, [`printing ${street}`]);
  return { tracking: "LS-77-301" };
});

export const pack = task("pack", async ({ shelf }: { shelf: string }, ctx) => {
  await pretend(ctx, 900, [`fetching from shelf ${shelf}`, "box closed"]);
  return { boxes: 1 };
});

export const ship = task("ship", async ({ tracking, boxes }: { tracking: string; boxes: number }, ctx) => {
  await pretend(ctx, 700, [`${boxes} box handed over`, `tracking ${tracking}`]);
  return { tracking };
});

export const thank = task("send-receipt", async ({ customer, receipt }: { customer: string; receipt: string }, ctx) => {
  await pretend(ctx, 400, [`receipt ${receipt} sent to ${customer}`]);
});

/** Work that takes a while and reports progress. */
async function pretend(ctx: Context, ms: number, lines: readonly string[]): Promise<void> {
  for (const line of lines) {
    ctx.log(line);
    await sleep(ms / lines.length, undefined, { signal: ctx.signal });
  }
}
