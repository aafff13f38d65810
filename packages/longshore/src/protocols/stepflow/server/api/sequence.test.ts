import { describe, expect, it } from "vitest";
import { isReached, numberAt, numberOf, numberOfEnd } from "./sequence.ts";

describe("the numbers of events", () => {
  it("begin with 0, and rise with time and with the place in a millisecond", () => {
    const numbers = [
      numberOf(1_000, 1_000, 0),
      numberOf(1_000, 1_000, 1),
      numberOfEnd(1_000, 1_000),
      numberOf(1_000, 1_001, 0),
      numberOf(1_000, 1_001, 7),
      numberOfEnd(1_000, 1_001),
    ];
    expect(numbers[0]).toBe(0);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(new Set(numbers).size).toBe(numbers.length);
  });

  it("leave the last place of a millisecond to the end of the run, and stay whole for a run of two years", () => {
    expect(numberOf(0, 5, 1_000_000)).toBeLessThan(numberOfEnd(0, 5));
    expect(Number.isSafeInteger(numberOfEnd(0, 2 * 365 * 24 * 3_600_000))).toBe(true);
  });

  it("never fall below that of the beginning, for any clock of an earlier process", () => {
    expect(numberAt(1_000, 900)).toBe(0);
  });

  it("are reached by all events of the same millisecond", () => {
    expect(isReached(numberAt(0, 5), numberOf(0, 5, 3))).toBe(true);
    expect(isReached(numberAt(0, 4), numberOf(0, 5, 0))).toBe(false);
  });
});
