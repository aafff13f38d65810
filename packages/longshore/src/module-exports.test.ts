import { expect, it } from "vitest";
import { task } from "./core/task.ts";
import { graph } from "./graph.ts";
import { isEmpty, sortExports } from "./module-exports.ts";
import { schedule } from "./schedule.ts";

const add = task("add", async () => 1);
const halve = task("halve", async () => 2);
const mean = graph("mean", (g, input) => g.step(add, input));
const nightly = schedule("nightly", { cron: "0 3 * * *", workflow: mean });

it("sorts exports by name, as default and in lists, each once", () => {
  const { tasks, workflows, schedules } = sortExports({
    add,
    default: mean,
    more: [halve, add, mean, 7, null, nightly],
    other: "text",
    nightly,
  });
  expect(schedules).toEqual([nightly]);
  expect(tasks).toEqual([add, halve]);
  expect(workflows).toEqual([mean]);
});

it("finds what a CommonJS module exports, which is inside its default", () => {
  const { tasks, workflows } = sortExports({ default: { add, mean } });
  expect([tasks, workflows]).toEqual([[add], [mean]]);
});

it("knows a module with nothing for a server or a worker", () => {
  expect(isEmpty(sortExports({ x: 1, handle: () => 1, list: [null] }))).toBe(true);
  expect(isEmpty(sortExports({ mean }))).toBe(false);
  expect(isEmpty(sortExports({ nightly }))).toBe(false);
});
