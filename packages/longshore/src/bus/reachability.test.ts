import { expect, it } from "vitest";
import type { Bus } from "../core/bus/bus.ts";
import { TestClock } from "../testing/clock.ts";
import { BusReach } from "./reachability.ts";

function setup() {
  const clock = new TestClock();
  const told: string[] = [];
  const reach = new BusReach({ failing: (what) => told.push(what), working: (what) => told.push(`over: ${what}`) }, clock);
  const broker: { away: Error | null } = { away: null };
  const bus = reach.watch({
    name: "Kafka at broker:9092",
    ensure: async () => {
      if (broker.away !== null) throw broker.away;
    },
  } as unknown as Bus);
  return { clock, told, reach, bus, broker };
}

it("the bus is unreachable from the first failure to the next success of any call", async () => {
  const { clock, reach, bus, told, broker } = setup();
  expect(reach.out).toBeNull();
  broker.away = new Error("connection refused");
  await expect(bus.ensure(["t"])).rejects.toThrow("connection refused");
  const since = clock.now();
  await clock.advance(5_000);
  reach.failing("publishing to Kafka at broker:9092", "no broker", "Kafka at broker:9092");
  expect(reach.out).toEqual({ since, error: "no broker" });
  broker.away = null;
  await bus.ensure(["t"]);
  expect(reach.out).toBeNull();
  expect(told).toEqual(["publishing to Kafka at broker:9092"]);
});

it("the bus stays reachable when records cannot be handled", () => {
  const { reach, told } = setup();
  reach.failing("handling records of the group g, written from Kafka at broker:9092", new Error("the disk is full"));
  expect(reach.out).toBeNull();
  expect(told).toEqual(["handling records of the group g, written from Kafka at broker:9092"]);
});
