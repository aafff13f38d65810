import { expect, it } from "vitest";
import { hints } from "./hints.ts";

const { workerFor, ownsLane } = hints({ url: "http://h:1", asksToken: false, flags: {} });

it("a queue needs a worker of that queue, and no worker helps where a plugin is called", () => {
  expect(["stepflow:python", "stepflow-http:node", "greet"].map((name) => ownsLane?.(name))).toEqual([true, true, false]);
  expect(workerFor({ name: "stepflow:python", labels: [] })).toBe(
    "a Stepflow worker with STEPFLOW_TASKS_URL=h:1 and STEPFLOW_QUEUE_NAME=python",
  );
  expect(workerFor({ name: "stepflow-http:node", labels: [] })).toBeNull();
  expect(workerFor({ name: "greet", labels: [] })).toBeNull();
});
