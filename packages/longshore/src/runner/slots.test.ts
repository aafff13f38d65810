import { describe, expect, it } from "vitest";
import { SlotPool } from "./slots.ts";

const never = new AbortController().signal;

describe("slots", () => {
  it("are given out up to their number, then in the order of asking", async () => {
    const pool = new SlotPool(2);
    expect(await pool.take("a", never)).toBe(true);
    expect(pool.takeFree(5)).toBe(1);
    const order: string[] = [];
    const first = pool.take("a", never).then(() => order.push("first"));
    const second = pool.take("b", never).then(() => order.push("second"));
    pool.release();
    await first;
    pool.release();
    await second;
    expect(order).toEqual(["first", "second"]);
    pool.release();
    pool.release();
    expect(pool.free).toBe(2);
  });

  it("know whether somebody else waits", async () => {
    const pool = new SlotPool(1);
    await pool.take("a", never);
    void pool.take("a", never);
    expect(pool.wantedByOthers("a")).toBe(false);
    void pool.take("b", never);
    expect(pool.wantedByOthers("a")).toBe(true);
  });

  it("are not swallowed by somebody who stopped waiting", async () => {
    const pool = new SlotPool(1);
    await pool.take("a", never);
    const gone = new AbortController();
    const waiting = pool.take("b", gone.signal);
    gone.abort();
    expect(await waiting).toBe(false);
    pool.release();
    expect(pool.free).toBe(1);
    expect(await pool.take("c", gone.signal)).toBe(false);
  });
});
