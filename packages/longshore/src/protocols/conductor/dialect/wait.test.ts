import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseDuration, parseUntil, waitUntil } from "./wait.ts";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;

describe("durations", () => {
  it("have days, hours, minutes and seconds in this order, in any spelling and case", () => {
    expect(parseDuration("1 days 2 hours 3 minutes 4 seconds")).toBe(day + 2 * hour + 3 * minute + 4 * second);
    expect(parseDuration("2 seconds")).toBe(2 * second);
    expect(parseDuration("5m")).toBe(5 * minute);
    expect(parseDuration(" 1D2HRS ")).toBe(day + 2 * hour);
    expect(parseDuration("1 hr 1 min 1 sec")).toBe(hour + minute + second);
    expect(parseDuration("0s")).toBe(0);
  });

  it("that have any other form are refused", () => {
    for (const text of ["", "  ", "5", "5 ms", "4 seconds 3 minutes", "-1s", "1.5h", "soon", "99999999999s", "9999999999 d"])
      expect(parseDuration(text), text).toBeNull();
  });
});

describe("times", () => {
  it("are in the given time zone when they name none", () => {
    expect(parseUntil("2026-11-16 09:30", "UTC")).toBe(Date.UTC(2026, 10, 16, 9, 30));
    expect(parseUntil("2026-11-16 09:30", "Europe/Berlin")).toBe(Date.UTC(2026, 10, 16, 8, 30));
    expect(parseUntil("2026-11-16", "UTC")).toBe(Date.UTC(2026, 10, 16));
  });

  it("may have a time zone: a name, an abbreviation or an offset", () => {
    for (const [zone, offsetHours] of [
      ["GMT", 0],
      ["UTC", 0],
      ["America/New_York", -4],
      ["EST", -4],
      ["GMT+02:00", 2],
      ["+0530", 5.5],
      ["Asia/Kolkata", 5.5],
    ] as const)
      expect(parseUntil(`2026-07-01 12:00 ${zone}`, "Asia/Tokyo"), zone).toBe(Date.UTC(2026, 6, 1, 12) - offsetHours * hour);
  });

  it("are local times, before and after a clock change", () => {
    expect(parseUntil("2026-03-29 01:30", "Europe/Berlin")).toBe(Date.UTC(2026, 2, 29, 0, 30));
    expect(parseUntil("2026-03-29 03:30", "Europe/Berlin")).toBe(Date.UTC(2026, 2, 29, 1, 30));
    expect(parseUntil("2026-10-25 03:30", "Europe/Berlin")).toBe(Date.UTC(2026, 9, 25, 2, 30));
  });

  it("in any other form are refused", () => {
    for (const text of [
      "",
      "tomorrow",
      "2026-02-31",
      "2026-13-01",
      "2026-01-01 25:00",
      "2026-01-01T10:00",
      "2026-01-01 10:00 Nowhere/Land",
    ])
      expect(parseUntil(text, "UTC"), text).toBeNull();
  });

  it("are read exactly as they were written in UTC", () => {
    fc.assert(
      fc.property(fc.date({ min: new Date("1970-01-01"), max: new Date("2100-01-01"), noInvalidDate: true }), (date) => {
        const text = date.toISOString().slice(0, 16).replace("T", " ");
        expect(parseUntil(`${text} UTC`)).toBe(Math.floor(date.getTime() / minute) * minute);
      }),
    );
  });
});

describe("a wait", () => {
  const now = Date.UTC(2026, 10, 16);

  it("ends after its duration or at its time, or at once when the time has passed", () => {
    expect(waitUntil({ duration: "2 seconds" }, now)).toEqual({ dueAt: now + 2_000 });
    expect(waitUntil({ until: "2026-11-17" }, now, "UTC")).toEqual({ dueAt: now + day });
    expect(waitUntil({ until: "2020-01-01" }, now, "UTC")).toEqual({ dueAt: now });
  });

  it("waits for a signal when it has neither", () => {
    expect(waitUntil({}, now)).toEqual({ signal: true });
    expect(waitUntil({ duration: null, until: " " }, now)).toEqual({ signal: true });
  });

  it("fails when it has both, or when one of them cannot be read", () => {
    expect(waitUntil({ duration: "1s", until: "2026-11-17" }, now)).toHaveProperty("failed");
    expect(waitUntil({ duration: "later" }, now)).toHaveProperty("failed");
    expect(waitUntil({ until: "later" }, now)).toHaveProperty("failed");
  });
});
