import { describe, expect, it } from "vitest";
import type { Json } from "../../core/json/json.ts";
import { Growth, grownMax, keptSize } from "./growth.ts";

const text = (chars: number) => "x".repeat(chars);

describe("the references of one value", () => {
  it("may contain one value of any size, and small ones", () => {
    const growth = new Growth();
    expect(growth.took(text(3 * grownMax.chars))).toBe(true);
    expect(growth.took(text(1_000))).toBe(true);
    expect(growth.took({ a: [1, 2, 3] })).toBe(true);
  });

  it("may contain no large value twice, at any place", () => {
    const growth = new Growth();
    expect(growth.took("small")).toBe(true);
    expect(growth.took(text(grownMax.chars + 1))).toBe(true);
    expect(growth.took(text(grownMax.chars + 1))).toBe(false);
    expect(growth.took("small")).toBe(false);
  });

  it("are counted together", () => {
    const growth = new Growth();
    const taken = Array.from({ length: 20 }, () => growth.took(text(grownMax.chars / 10)));
    expect(taken.filter((fits) => fits)).toHaveLength(10);
  });

  it("have a limit on the number of values, also of short ones", () => {
    const growth = new Growth();
    const short = Array.from({ length: grownMax.values / 4 }, () => 0);
    expect(Array.from({ length: 6 }, () => growth.took(short))).toEqual([true, true, true, true, false, false]);
  });
});

describe("a value that a template has made", () => {
  const largest = (chars: number, values: number) => () => ({ chars, values });

  it("may contain a bounded size in addition to the largest value that it was made of", () => {
    const value = [text(grownMax.chars), text(1_000)];
    expect(keptSize(value, largest(grownMax.chars + 2, 1))).toBeDefined();
    expect(keptSize(value, largest(500, 1))).toBeUndefined();
  });

  it("is not compared with what it was made of while it is small", () => {
    const asked = () => {
      throw new Error("The largest value is measured.");
    };
    expect(keptSize({ a: [1, 2, 3], b: text(1_000) }, asked)).toBeDefined();
  });

  it("is not walked through to its end where it repeats itself", () => {
    let value: Json = "abcdefgh";
    for (let level = 0; level < 60; level++) value = [value, value];
    expect(keptSize(value, largest(1_000, 10))).toBeUndefined();
  });
});
