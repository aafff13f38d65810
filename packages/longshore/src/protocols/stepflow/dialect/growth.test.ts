import { describe, expect, it } from "vitest";
import { Growth, grownCharsMax } from "./growth.ts";

const text = (chars: number) => "x".repeat(chars);

describe("the references of one value", () => {
  it("may contain one value of any size, and small ones besides", () => {
    const growth = new Growth();
    expect(growth.took(text(3 * grownCharsMax))).toBe(true);
    expect(growth.took(text(1_000))).toBe(true);
    expect(growth.took({ a: [1, 2, 3] })).toBe(true);
  });

  it("may contain no large value twice, wherever it is among them", () => {
    const growth = new Growth();
    expect(growth.took("small")).toBe(true);
    expect(growth.took(text(grownCharsMax + 1))).toBe(true);
    expect(growth.took(text(grownCharsMax + 1))).toBe(false);
    expect(growth.took("small")).toBe(false);
  });

  it("are counted together", () => {
    const growth = new Growth();
    const taken = Array.from({ length: 20 }, () => growth.took(text(grownCharsMax / 10)));
    expect(taken.filter((fits) => fits)).toHaveLength(10);
  });
});
