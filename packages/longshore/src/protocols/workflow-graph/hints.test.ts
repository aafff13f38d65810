import { expect, it } from "vitest";
import { hints } from "./hints.ts";

const { workerFor, ownsLane } = hints({ url: "http://h:1", asksToken: false, flags: {} });

it("a command needs a worker with a shell, or one whose file exports the handler that it names", () => {
  expect(ownsLane?.("$command")).toBe(true);
  expect(workerFor({ name: "$command", labels: ["gpu"] })).toBe("npx longshore work --shell --labels gpu --on http://h:1");
  expect(workerFor({ name: "$command", labels: ["handler:greet"] })).toBe(
    "npx longshore work FILE --on http://h:1, where FILE exports a task named greet",
  );
});

it("a turn of a durable function needs a worker whose file exports it", () => {
  expect(ownsLane?.("function:order")).toBe(true);
  expect(workerFor({ name: "function:order", labels: [] })).toBe(
    "npx longshore work FILE --on http://h:1, where FILE exports the workflow order",
  );
});

it("any other lane needs a worker whose file exports a task of its name", () => {
  expect(ownsLane?.("greet")).toBe(false);
  expect(workerFor({ name: "greet", labels: ["gpu"] })).toBe(
    "npx longshore work FILE --labels gpu --on http://h:1, where FILE exports a task named greet",
  );
});

it("a durable function needs a worker whose file exports it", () => {
  expect(ownsLane?.("function:order")).toBe(true);
  expect(workerFor({ name: "function:order", labels: [] })).toBe(
    "npx longshore work FILE --on http://h:1, where FILE exports the workflow order",
  );
});
