import { expect, it } from "vitest";
import { momentText } from "./moment.ts";

const now = new Date(2026, 2, 29, 9, 5).getTime();

it("shows only the time on the same day", () => {
  expect(momentText(new Date(2026, 2, 29, 14, 30, 59).getTime(), now)).toBe("14:30");
  expect(momentText(new Date(2026, 2, 29, 0, 0).getTime(), now)).toBe("00:00");
});

it("shows the date of another day too", () => {
  expect(momentText(new Date(2026, 2, 30, 4, 3).getTime(), now)).toBe("2026-03-30 04:03");
  expect(momentText(new Date(2027, 2, 29, 9, 5).getTime(), now)).toBe("2027-03-29 09:05");
});
