import { expect, it } from "vitest";
import { TestClock } from "../../testing/clock.ts";
import { CarriedMessages } from "./carried-messages.ts";

it("a caller also waits for messages that a message creates", async () => {
  const carried = new CarriedMessages(new TestClock());
  let newest = 1;
  const order: string[] = [];
  const waiting = carried
    .wait(
      () => newest,
      () => true,
    )
    .then(() => order.push("answered"));
  newest = 2;
  carried.reached(1);
  await turn();
  order.push("second");
  carried.reached(2);
  await waiting;
  expect(order).toEqual(["second", "answered"]);
});

it("a caller continues when messages are no longer carried out, although its message was not reached", async () => {
  const carried = new CarriedMessages(new TestClock());
  let isCarrying = true;
  const waiting = carried.wait(
    () => 7,
    () => isCarrying,
  );
  isCarrying = false;
  carried.stopped();
  // The clock does not move: only the stop lets the caller continue.
  await waiting;
});

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
