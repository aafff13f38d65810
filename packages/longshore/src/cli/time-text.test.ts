import { expect, it } from "vitest";
import { timeText } from "./time-text.ts";

const at = (day: number, hours: number, minutes: number, seconds = 0) => new Date(2026, 2, day, hours, minutes, seconds).getTime();

it("a time is written without the date on its own day, with seconds when it is near, and in full otherwise", () => {
  const now = at(9, 9, 0);
  expect(timeText(at(9, 14, 30, 12), now)).toBe("14:30");
  expect(timeText(at(9, 9, 5, 7), now)).toBe("09:05:07");
  expect(timeText(at(10, 8, 59), now)).toBe("2026-03-10 08:59");
  expect(timeText(at(16, 9, 0), now)).toBe("2026-03-16 09:00");
  expect(timeText(at(9, 0, 1), at(8, 23, 59))).toBe("2026-03-09 00:01:00");
});
