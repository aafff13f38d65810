import { expect, it } from "vitest";
import { TestClock } from "../../testing/clock.ts";
import { Runs } from "./runs.ts";
import type { NewChild, RunStore } from "./store.ts";

/** Runs over a store that has one message: to start a run in the format of a dialect. */
function setup() {
  const clock = new TestClock();
  const delivered: (NewChild | null)[] = [];
  const log: string[] = [];
  const trouble = {
    failing: (what: string, error: unknown) => void log.push(`${what}: ${(error as Error).message}`),
    working: () => {},
  };
  const message = { kind: "start-run", workflow: null, dialect: "odd", input: "{}", parentTaskId: "r.0", from: "r", runId: "child" };
  const store: Pick<RunStore, "messages" | "deliver"> = {
    messages: async (after) => (after === undefined && delivered.length === 0 ? ([{ id: 1, message }] as never) : []),
    deliver: async (_, child) => void delivered.push(child),
  };
  const runs = new Runs({ store: store as RunStore, clock, makeId: () => "id", dialects: new Map(), trouble });
  const settle = async () => {
    for (let round = 0; round < 20; round++) await clock.advance(0);
  };
  return { runs, delivered, log, settle };
}

it("a message that cannot be carried out is reported, with the reason", async () => {
  const { runs, log, settle } = setup();
  runs.carry();
  await settle();
  expect(log).toEqual(["carrying out a message between runs: This server has no starter for runs of odd yet."]);
  await runs.close();
});

it("a start whose data the starter did not expect fails, and is not tried again", async () => {
  const { runs, delivered, log, settle } = setup();
  runs.startsFor("odd", async () => {
    throw new TypeError("Cannot convert object to primitive value");
  });
  runs.carry();
  await settle();
  expect(delivered).toEqual([{ failed: "Cannot convert object to primitive value" }]);
  expect(log).toEqual([]);
  await runs.close();
});
