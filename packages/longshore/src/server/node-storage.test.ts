import { expect, it } from "vitest";
import { HealthCheck } from "../protocols/longshore/server/health.ts";
import { TestClock } from "../testing/clock.ts";
import { nodeStorage } from "./node-storage.ts";

/** A node whose calls wait for an owner until the test answers them. */
function setup() {
  const clock = new TestClock();
  const node = {
    isServing: true,
    asked: 0,
    answer: (_error?: Error) => {},
    program: () => {
      node.asked++;
      return new Promise<void>((resolve, reject) => {
        node.answer = (error) => (error === undefined ? resolve() : reject(error));
      });
    },
  };
  const health = new HealthCheck({ storage: nodeStorage(node, clock), clock, version: "1", closing: new AbortController().signal });
  return { clock, node, health };
}

it("a node without an owner is not ready, and reports the reason without a call to an owner", async () => {
  const { node, health } = setup();
  node.isServing = false;
  expect(await health.ready()).toMatchObject({ status: "unavailable", message: "No node owns the data now." });
  expect(node.asked).toBe(0);
});

it("a node is ready when its owner has written", async () => {
  const { node, health } = setup();
  const ready = health.ready();
  node.answer();
  expect((await ready).status).toBe("ok");
});

it("a node whose owner does not answer reports this before the probe times out, and sends one call for all probes", async () => {
  const { clock, node, health } = setup();
  const probes = [health.ready(), health.ready()];
  await clock.advance(900);
  const late = { status: "unavailable", message: "The owner of the data has not answered within 900 ms." };
  expect(await Promise.all(probes)).toMatchObject([late, late]);
  expect(node.asked).toBe(1);
  node.answer(new Error("The owner has gone."));
  const next = health.ready();
  node.answer();
  expect((await next).status).toBe("unavailable");
  await expect
    .poll(async () => {
      const again = health.ready();
      node.answer();
      return (await again).status;
    })
    .toBe("ok");
});
