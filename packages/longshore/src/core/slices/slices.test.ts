import { describe, expect, it } from "vitest";
import { Slices, turnRows } from "./slices.ts";

describe("reading in slices", () => {
  it("continues at once while a turn has room, then after everything else that waits", async () => {
    const slices = new Slices();
    const order: string[] = [];
    setImmediate(() => order.push("another request"));
    for (let at = 0; at < 5; at++) {
      await slices.turn(turnRows / 2);
      order.push(`slice ${at}`);
    }
    expect(order).toEqual(["slice 0", "slice 1", "another request", "slice 2", "slice 3", "slice 4"]);
    expect([slices.longest, slices.total]).toEqual([turnRows, 2.5 * turnRows]);
  });

  it("is limited for all readers together, and each gets its turn", async () => {
    const slices = new Slices();
    const done: string[] = [];
    const read = async (name: string, times: number) => {
      for (let at = 0; at < times; at++) await slices.turn(turnRows);
      done.push(name);
    };
    await Promise.all([read("long", 20), read("short", 2), read("middle", 5)]);
    expect(done).toEqual(["short", "middle", "long"]);
    expect(slices.longest).toBe(turnRows);
  });

  it("gives a slice that is longer than a turn its own turn, and counts long texts afterwards", async () => {
    const slices = new Slices();
    let others = 0;
    setImmediate(() => others++);
    await slices.turn(3 * turnRows);
    expect(others).toBe(0);
    await slices.turn(1);
    expect(others).toBe(1);
    slices.spent(1_024 * turnRows + 5);
    expect(slices.longest).toBe(3 * turnRows);
    await slices.turn(1);
    expect(slices.total).toBe(4 * turnRows + 2);
  });
});
