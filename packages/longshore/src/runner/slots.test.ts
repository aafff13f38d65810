import { describe, expect, it } from "vitest";
import { SlotPool } from "./slots.ts";

describe("slots", () => {
  it("are given out up to their number, and then in the order of the requests", async () => {
    const pool = new SlotPool(2);
    expect(await pool.take("a")).toBe(true);
    expect(pool.takeFree(5)).toBe(1);
    const order: string[] = [];
    const first = pool.take("a").then(() => order.push("first"));
    const second = pool.take("b").then(() => order.push("second"));
    pool.release();
    await first;
    pool.release();
    await second;
    expect(order).toEqual(["first", "second"]);
    pool.release();
    pool.release();
    expect(pool.free).toBe(2);
  });

  it("report whether another transport waits", async () => {
    const pool = new SlotPool(1);
    await pool.take("a");
    void pool.take("a");
    expect(pool.wantedByOthers("a")).toBe(false);
    void pool.take("b");
    expect(pool.wantedByOthers("a")).toBe(true);
  });

  it("are not kept for a transport that stopped waiting", async () => {
    const pool = new SlotPool(1);
    await pool.take("a");
    const patience = new AbortController();
    const impatient = pool.take("b", patience.signal);
    const patient = pool.take("c", new AbortController().signal);
    patience.abort();
    expect(await impatient).toBe(false);
    pool.release();
    expect(await patient).toBe(true);
    pool.release();
    expect(pool.free).toBe(1);
    expect(await pool.take("b", patience.signal)).toBe(false);
    expect(pool.free).toBe(1);
  });

  it("stay in the pool when it closes while a transport waits", async () => {
    const pool = new SlotPool(1);
    await pool.take("a");
    const waiting = pool.take("b");
    pool.close();
    expect(await waiting).toBe(false);
    pool.release();
    expect(pool.free).toBe(1);
    expect(await pool.take("c")).toBe(false);
  });
});
