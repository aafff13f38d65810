import { describe, expect, it } from "vitest";
import { WeightedCache } from "./weighted-cache.ts";

describe("a weighted cache", () => {
  it("removes the entries that were not used for the longest time when its weight is too large", () => {
    const cache = new WeightedCache<number>(10);
    cache.set("a", 1, 4);
    cache.set("b", 2, 4);
    cache.set("a", 3, 5);
    cache.set("c", 4, 2);
    expect([cache.get("a"), cache.get("b"), cache.get("c")]).toEqual([3, undefined, 4]);
    expect(cache.get("a")).toBe(3);
    cache.set("d", 5, 4);
    expect([cache.has("a"), cache.has("c"), cache.has("d"), cache.weight]).toEqual([true, false, true, 9]);
  });

  it("keeps the newest entry, also when it is heavy", () => {
    const cache = new WeightedCache<number>(10);
    cache.set("a", 1);
    cache.set("b", 2, 99);
    expect([cache.get("a"), cache.get("b"), cache.weight]).toEqual([undefined, 2, 99]);
  });
});
