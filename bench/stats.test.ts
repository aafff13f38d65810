import { describe, expect, it } from "vitest";
import { median, quantile, ratioByRound } from "./stats.ts";

describe("statistics", () => {
  it("takes the middle value of an odd count and the mean of the middle two of an even one", () => {
    expect(median([9, 1, 5])).toBe(5);
    expect(median([4, 1, 3, 2])).toBe(2.5);
  });

  it("interpolates quantiles and does not reorder its input", () => {
    const values = [30, 10, 20];
    expect(quantile(values, 0)).toBe(10);
    expect(quantile(values, 0.75)).toBe(25);
    expect(values).toEqual([30, 10, 20]);
  });

  it("returns not-a-number, and not zero, when there are no values", () => {
    expect(median([])).toBeNaN();
  });

  it("compares the two sides round by round", () => {
    expect(ratioByRound([10, 40, 30], [10, 10, 10])).toEqual({ median: 3, lowest: 1, highest: 4 });
  });
});
