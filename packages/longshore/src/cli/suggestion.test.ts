import { expect, it } from "vitest";
import { nearNames } from "./suggestion.ts";

const known = ["mean", "order", "order-refund", "Nightly-Report", "a"];

it.each([
  ["maen", ["mean"]],
  ["mena", ["mean"]],
  ["men", ["mean"]],
  ["ordr", ["order"]],
  ["oder-refund", ["order-refund"]],
  ["nightly-report", ["Nightly-Report"]],
  ["refund", ["order-refund"]],
  ["billing", []],
  ["b", ["a"]],
])("%s is near %j", (given, near) => {
  expect(nearNames(given, known)).toEqual(near);
});

it("the nearest name is first, and no more names than requested are returned", () => {
  const names = Array.from({ length: 20 }, (_, at) => `import-${at}`);
  expect(nearNames("import-7", names, 2)[0]).toBe("import-7");
  expect(nearNames("import-7", names, 2)).toHaveLength(2);
});
