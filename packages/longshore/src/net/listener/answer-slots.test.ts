import { describe, expect, it } from "vitest";
import { AnswerSlots, madeAtOnce, type SlotHolder } from "./answer-slots.ts";

const request = (): SlotHolder => ({ slotOf: undefined });

function full(slots: AnswerSlots, caller: string): SlotHolder[] {
  const made = Array.from({ length: madeAtOnce }, request);
  for (const each of made) expect(slots.enter(each, 0, caller)).toBeUndefined();
  return made;
}

describe("slots for large responses", () => {
  it("are limited for each caller, and the next request gets a slot when one is free, in order", async () => {
    const slots = new AnswerSlots();
    const [first, second] = full(slots, "a") as [SlotHolder, SlotHolder];
    const order: string[] = [];
    const next = request();
    const turns = [slots.enter(next, 10, "a")?.then(() => order.push("1")), slots.enter(request(), 10, "a")?.then(() => order.push("2"))];
    expect(slots.waiting).toBe(2);
    slots.leave(first);
    slots.leave(first);
    await turns[0];
    expect([order, next.slotOf, slots.waiting]).toEqual([["1"], "a", 1]);
    slots.leave(second);
    await turns[1];
    expect(order).toEqual(["1", "2"]);
  });

  it("of one caller do not delay another caller", () => {
    const slots = new AnswerSlots();
    full(slots, "a");
    full(slots, "b");
    expect(slots.enter(request(), 0, "b")).toBeInstanceOf(Promise);
  });

  it("leave nothing in memory when all are free", () => {
    const slots = new AnswerSlots();
    for (let round = 0; round < 3; round++) for (const each of full(slots, "a")) slots.leave(each);
    expect(slots.waiting).toBe(0);
  });

  it("refuse a request when the waiting requests have too many characters", () => {
    const slots = new AnswerSlots();
    const made = full(slots, "a");
    expect(slots.enter(request(), 60_000_000, "a")).toBeInstanceOf(Promise);
    expect(() => slots.enter(request(), 10_000_000, "a")).toThrow(/wait for their answers/);
    for (const each of made.slice(0, 1)) slots.leave(each);
    expect(slots.enter(request(), 10_000_000, "a")).toBeInstanceOf(Promise);
  });

  it("are needed for actions that read and need a token, except metrics", () => {
    const slots = new AnswerSlots();
    expect((["run.read", "definition.check", "part.read"] as const).every((action) => slots.counts(action))).toBe(true);
    expect((["server.health", "server.measure", "task.claim", "run.start"] as const).some((action) => slots.counts(action))).toBe(false);
  });
});
