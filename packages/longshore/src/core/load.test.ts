import { expect, it } from "vitest";
import { exportedTasks } from "./load.ts";
import { task } from "./task.ts";

const [a, b, c] = ["a", "b", "c"].map((name) => task(name, () => null));

it("finds tasks among exports, as default and in lists, each once", () => {
  expect(exportedTasks({ a, default: b, list: [c, a], other: 1, none: null, name: { name: "x" } })).toEqual([a, b, c]);
});

it("finds the exports of a CommonJS module", () => {
  expect(exportedTasks({ default: { a, rest: 7 }, "module.exports": { a } })).toEqual([a]);
});

it("finds nothing in a module without tasks", () => {
  expect(exportedTasks({})).toEqual([]);
  expect(exportedTasks({ default: undefined })).toEqual([]);
});
