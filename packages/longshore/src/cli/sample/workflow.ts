// The sample workflow: an order from price to receipt. Each step starts as soon as its inputs exist.

import { graph } from "../../graph.ts";
import type { Ref } from "../../reference.ts";
import { charge, checkAddress, label, type Order, pack, price, reserve, ship, thank } from "./tasks.ts";

export const sampleOrder: Order = {
  customer: "Ada",
  items: [
    { name: "lantern", count: 2, price: 19.5 },
    { name: "rope", count: 1, price: 8 },
  ],
};

export const orderWorkflow = graph("order", (g, order: Ref<Order>) => {
  const priced = g.step(price, order);
  const address = g.step(checkAddress, { customer: order.customer });
  const reserved = g.step(reserve, { items: order.items });
  const paid = g.step(charge, { total: priced.total }, { retry: { limit: 3, backoff: { kind: "fixed", delayMs: 600 } } });
  const labelled = g.step(label, { street: address.street });
  const packed = g.step(pack, { shelf: reserved.shelf }, { after: [paid] });
  const shipped = g.step(ship, { tracking: labelled.tracking, boxes: packed.boxes });
  g.step(thank, { customer: order.customer, receipt: paid.receipt }, { after: [shipped] });
  return { total: priced.total, tracking: shipped.tracking };
});
