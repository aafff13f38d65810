import { expect, it } from "vitest";
import { TestClock } from "../testing/clock.ts";
import { sparing } from "./notices.ts";

it("a transport logs at most thirty lines a minute, and then the number of dropped lines", async () => {
  const clock = new TestClock();
  const lines: string[] = [];
  const tell = sparing(clock, ({ message }) => lines.push(message));
  for (let at = 0; at < 1_000; at++) tell({ level: "error", message: `refused ${at}` });
  expect([lines.length, lines.at(-1)]).toEqual([30, "refused 29"]);
  await clock.advance(60_000);
  tell({ level: "info", message: "later" });
  expect(lines.slice(30)).toEqual(["970 further messages like those above were left out.", "later"]);
});
