import { describe, expect, it } from "vitest";
import { type Made, Making, madeAtOnce } from "./answer-slots.ts";

const request = (): Made => ({ making: undefined });

function full(making: Making, caller: string): Made[] {
  const made = Array.from({ length: madeAtOnce }, request);
  for (const each of made) expect(making.enter(each, 0, caller)).toBeUndefined();
  return made;
}

describe("answers that are made", () => {
  it("are few for one caller, and the next begins when one leaves, in their order", async () => {
    const making = new Making();
    const [first, second] = full(making, "a") as [Made, Made];
    const order: string[] = [];
    const next = request();
    const turns = [making.enter(next, 10, "a")?.then(() => order.push("1")), making.enter(request(), 10, "a")?.then(() => order.push("2"))];
    expect(making.waiting).toBe(2);
    making.leave(first);
    making.leave(first);
    await turns[0];
    expect([order, next.making, making.waiting]).toEqual([["1"], "a", 1]);
    making.leave(second);
    await turns[1];
    expect(order).toEqual(["1", "2"]);
  });

  it("of one caller keep no other waiting", () => {
    const making = new Making();
    full(making, "a");
    full(making, "b");
    expect(making.enter(request(), 0, "b")).toBeInstanceOf(Promise);
  });

  it("leave nothing behind when all are made", () => {
    const making = new Making();
    for (let round = 0; round < 3; round++) for (const each of full(making, "a")) making.leave(each);
    expect(making.waiting).toBe(0);
  });

  it("refuse a request to wait when those that wait have too many characters", () => {
    const making = new Making();
    const made = full(making, "a");
    expect(making.enter(request(), 60_000_000, "a")).toBeInstanceOf(Promise);
    expect(() => making.enter(request(), 10_000_000, "a")).toThrow(/wait for their answers/);
    for (const each of made.slice(0, 1)) making.leave(each);
    expect(making.enter(request(), 10_000_000, "a")).toBeInstanceOf(Promise);
  });

  it("count for what reads and needs a token, except figures", () => {
    const making = new Making();
    expect((["run.read", "definition.check", "part.read"] as const).every((action) => making.counts(action))).toBe(true);
    expect((["server.health", "server.measure", "task.claim", "run.start"] as const).some((action) => making.counts(action))).toBe(false);
  });
});
