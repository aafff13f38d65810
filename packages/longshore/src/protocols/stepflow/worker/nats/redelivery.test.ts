import { expect, it } from "vitest";
import { delayAfter, deliveriesIn, deliveriesMax } from "./redelivery.ts";

it("a message is delivered again after growing pauses for more than an hour, and then given up", () => {
  let sumMs = 0;
  for (let deliveries = 1; deliveries < deliveriesMax; deliveries++) sumMs += delayAfter(deliveries) as number;
  expect(sumMs).toBeGreaterThan(3_600_000);
  expect([delayAfter(1), delayAfter(2), delayAfter(deliveriesMax), delayAfter(deliveriesMax + 5)]).toEqual([
    5_000,
    10_000,
    undefined,
    undefined,
  ]);
});

it("the number of deliveries is read from the reply subject, with and without a domain", () => {
  expect(deliveriesIn("$JS.ACK.STEPFLOW.workers.7.100.200.1700000000000000000.3")).toBe(7);
  expect(deliveriesIn("$JS.ACK._.hash.STEPFLOW.workers.7.100.200.1700000000000000000.3.token")).toBe(7);
  for (const subject of [undefined, "", "inbox.1", "$JS.ACK.s.c.x.1.1.1.1"]) expect(deliveriesIn(subject)).toBe(1);
});
