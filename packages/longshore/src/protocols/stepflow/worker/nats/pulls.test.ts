import { describe, expect, it } from "vitest";
import type { Slot } from "../../../../runner/transport.ts";
import { TestClock } from "../../../../testing/clock.ts";
import { Pulls } from "./pulls.ts";

function setup() {
  const clock = new TestClock();
  const requests: unknown[] = [];
  const delivered: unknown[] = [];
  const surplus: string[] = [];
  const released: string[] = [];
  const slot = (name: string) => ({ name, release: () => released.push(name) }) as unknown as Slot;
  const pulls = new Pulls<string>({
    clock,
    expiresMs: 30_000,
    request: (...request) => requests.push(request),
    deliver: (message, { name }: Slot & { name?: string }) => delivered.push([message, name]),
    surplus: (message) => surplus.push(message),
  });
  return { clock, pulls, slot, requests, delivered, surplus, released };
}

describe("pull requests", () => {
  it("are filled in the order in which they were sent, one slot for each message", () => {
    const s = setup();
    s.pulls.open([s.slot("a"), s.slot("b")]);
    s.pulls.open([s.slot("c")]);
    for (const message of ["1", "2", "3", "4"]) s.pulls.receive(message);
    expect(s.requests).toEqual([
      [0, 2, 30_000],
      [1, 1, 30_000],
    ]);
    expect(s.delivered).toEqual([
      ["1", "b"],
      ["2", "a"],
      ["3", "c"],
    ]);
    expect(s.surplus).toEqual(["4"]);
  });

  it("give back their remaining slots when the server ends them", () => {
    const s = setup();
    s.pulls.open([s.slot("a"), s.slot("b")]);
    s.pulls.receive("1");
    s.pulls.end(0);
    s.pulls.end(0);
    s.pulls.end(7);
    expect(s.released).toEqual(["a"]);
  });

  it("end after their time when the server is silent, all with one timer", async () => {
    const s = setup();
    s.pulls.open([s.slot("a")]);
    await s.clock.advance(10_000);
    s.pulls.open([s.slot("b")]);
    expect(s.clock.pending).toBe(1);
    await s.clock.advance(24_999);
    expect(s.released).toEqual([]);
    await s.clock.advance(1);
    expect(s.released).toEqual(["a"]);
    await s.clock.advance(10_000);
    expect(s.released).toEqual(["a", "b"]);
    expect(s.clock.pending).toBe(0);
  });

  it("are recognised when the server ends them at once without a message", async () => {
    const s = setup();
    s.pulls.open([s.slot("a")]);
    expect(s.pulls.end(0)).toBe(true);
    s.pulls.open([s.slot("b"), s.slot("c")]);
    s.pulls.receive("1");
    expect(s.pulls.end(1)).toBe(false);
    s.pulls.open([s.slot("d")]);
    await s.clock.advance(1_000);
    expect(s.pulls.end(2)).toBe(false);
  });

  it("all end when there is no server", () => {
    const s = setup();
    s.pulls.open([s.slot("a")]);
    s.pulls.open([s.slot("b"), s.slot("c")]);
    s.pulls.endAll();
    expect(s.released.sort()).toEqual(["a", "b", "c"]);
    expect(s.clock.pending).toBe(0);
    s.pulls.receive("late");
    expect(s.surplus).toEqual(["late"]);
  });
});
