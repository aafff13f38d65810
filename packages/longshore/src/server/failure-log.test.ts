import { expect, it } from "vitest";
import { createLogger } from "../core/logger.ts";
import { TestClock } from "../testing/clock.ts";
import { FailureLog } from "./failure-log.ts";

it("logs a repeating failure once, and its end with the duration", async () => {
  const lines: { level: string; message: string; afterMs?: number; error?: string }[] = [];
  const clock = new TestClock();
  const trouble = new FailureLog(createLogger({ clock, write: (line) => lines.push(JSON.parse(line)) }), clock);
  trouble.working("the line");
  for (let at = 0; at < 5; at++) {
    trouble.failing("the line", new Error("cut"));
    await clock.advance(1_000);
  }
  trouble.failing("the mail", "odd");
  trouble.working("the line");
  trouble.working("the line");
  trouble.failing("the line", new Error("cut"));
  expect(lines.map(({ level, message, afterMs, error }) => [level, message, afterMs ?? error])).toEqual([
    ["warn", "Trouble with the line; it is tried again until it works", "cut"],
    ["warn", "Trouble with the mail; it is tried again until it works", "odd"],
    ["warn", "No more trouble with the line", 5_000],
    ["warn", "Trouble with the line; it is tried again until it works", "cut"],
  ]);
});
