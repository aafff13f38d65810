import { expect, it } from "vitest";
import { failureLine } from "./failure-line.ts";

const news = {
  runId: "R1",
  workflow: ".order+0123456789ab",
  state: "blocked",
  error: "the code\nasks for step prices now",
  more: 0,
} as const;
const line = (parts: Partial<Parameters<typeof failureLine>[0]>, on = "") => failureLine({ ...news, ...parts }, (_, text) => text, on);

it("a run that failed or is blocked is one line with its reason and the command that shows it", () => {
  expect(line({})).toBe("order blocked: the code asks for step prices now (longshore runs R1)");
  expect(line({ state: "timed-out", error: null }, " --on http://h:1")).toBe("order timed out (longshore runs R1 --on http://h:1)");
  expect(line({ error: "x".repeat(500) })).toBe(`order blocked: ${"x".repeat(199)}… (longshore runs R1)`);
  expect(line({ state: "failed", error: "no ink", more: 2 })).toBe(
    "order failed: no ink (longshore runs R1) And 2 other runs, see longshore runs.",
  );
});
