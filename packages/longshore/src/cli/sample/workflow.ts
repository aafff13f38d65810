// The sample workflow: an order from price to receipt. Each step starts as soon as its inputs exist.

import { type Ref, workflow } from "../../workflow.ts";
import { charge, checkAddress, label, type Order, pack, price, reserve, ship, thank } from "./tasks.ts";

export const sampleOrder: Order = {
  customer: "Ada",
  items: [
    { name: "lantern", count: 2, price: 19.5 },
    { name: "rope", count: 1, price: 8 },
  ],
};

export const orderWorkflow = workflow("order", (w, order: Ref<Order>) => {
  const priced = w.step(price, order);
  const address = w.step(checkAddress, { customer: order.customer });
  const reserved = w.step(reserve, { items: order.items });
  const paid = w.step(charge, { total: priced.total }, { retry: { limit: 3, backoff: { kind: "fixed", delayMs: 600 } } });
  const labelled = w.step(label, { street: address.street });
  const packed = w.step(pack, { shelf: reserved.shelf }, { after: [paid] });
  const shipped = w.step(ship, { tracking: labelled.tracking, boxes: packed.boxes });
  w.step(thank, { customer: order.customer, receipt: paid.receipt }, { after: [shipped] });
  return { total: priced.total, tracking: shipped.tracking };
});
