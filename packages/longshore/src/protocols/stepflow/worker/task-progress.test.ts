import { expect, it } from "vitest";
import { progressOf } from "./task-progress.ts";

it.each([
  [0.5, { progress: 0.5 }],
  [1, { progress: 1 }],
  [7, { statusMessage: "7" }],
  ["half way", { statusMessage: "half way" }],
  [
    { progress: 0.5, message: "half way" },
    { progress: 0.5, statusMessage: "half way" },
  ],
  [{ percent: 25 }, { progress: 0.25 }],
  [{ percent: 250, status: "odd" }, { statusMessage: "odd" }],
  [{ rows: 12 }, { statusMessage: '{"rows":12}' }],
  [[1, 2], { statusMessage: "[1,2]" }],
  [null, { statusMessage: "null" }],
])("the progress of a handler becomes a share, a text or both: %j", (value, told) => {
  expect(progressOf(value)).toEqual(told);
});

it("a long text is cut", () => {
  expect(progressOf("x".repeat(5_000)).statusMessage).toHaveLength(1_000);
});
