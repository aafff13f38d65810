import { beforeAll, describe, expect, it } from "vitest";
import { Times } from "./times.ts";

const times = new Times();
beforeAll(() => times.load());

/** The times of an expression in a stretch of some hours, as UTC without the date. */
function ticks(cron: string, timezone: string, from: string, hours: number): string[] {
  const when = { kind: "cron", cron, timezone } as const;

  const start = Date.parse(`${from}Z`);
  const found: string[] = [];
  for (let at = times.next(when, start - 1); at !== null && at < start + hours * 3_600_000; at = times.next(when, at))
    found.push(new Date(at).toISOString().slice(11, 16));
  return found;
}

describe("a cron expression when daylight saving begins", () => {
  // Clocks go from 02:00 to 03:00, at 01:00 UTC.
  it.each([
    ["30 2 * * *", ["01:00"], "a fixed time that does not exist comes at the end of the gap"],
    ["0,30 2 * * *", ["01:00"], "several of them come as one"],
    ["0 2 * * *", ["01:00"], "the first minute of the gap, too"],
    ["0 3 * * *", ["01:00"], "a time after it is not moved"],
    ["30 2,3 * * *", ["01:00", "01:30"], "each fixed time of a list is moved by itself"],
    ["30 1 * * *", ["00:30"], "a time before it is not moved"],
    ["*/15 2 * * *", [], "a wildcard in the minutes follows the clock"],
    ["0 * * * *", ["00:00", "01:00", "02:00", "03:00"], "an hourly time comes each hour"],
    ["0 */2 * * *", ["02:00"], "a step in the hours follows the clock"],
    ["*/30 * * * *", ["00:00", "00:30", "01:00", "01:30", "02:00", "02:30", "03:00", "03:30"], "nothing is added or left out"],
    ["@hourly", ["00:00", "01:00", "02:00", "03:00"], "a nickname is what it stands for"],
  ])("in Berlin, %s comes at %j: %s", (cron, expected) => {
    expect(ticks(cron, "Europe/Berlin", "2026-03-29T00:00", 4)).toEqual(expected);
  });

  // Clocks go from 02:00 to 03:00, at 07:00 UTC.
  it.each([
    ["30 2 * * *", ["07:00"]],
    ["0 2,14 * * *", ["07:00"]],
    ["15 1-3 * * *", ["06:15", "07:00", "07:15"]],
    ["*/20 2 * * *", []],
    ["0 * * * *", ["06:00", "07:00", "08:00", "09:00"]],
  ])("in New York, %s comes at %j", (cron, expected) => {
    expect(ticks(cron, "America/New_York", "2026-03-08T06:00", 4)).toEqual(expected);
  });
});

describe("a cron expression when daylight saving ends", () => {
  // Clocks go from 03:00 to 02:00, at 01:00 UTC.
  it.each([
    ["30 2 * * *", ["00:30"], "a fixed time that exists twice comes once"],
    ["0,30 2 * * *", ["00:00", "00:30"], "so does each of several"],
    ["0 3 * * *", ["02:00"], "a time after it is not moved"],
    ["30 1-3 * * *", ["00:30", "02:30"], "a range of hours repeats nothing"],
    ["*/30 2 * * *", ["00:00", "00:30", "01:00", "01:30"], "a wildcard in the minutes comes again"],
    ["0 * * * *", ["00:00", "01:00", "02:00", "03:00"], "an hourly time comes each hour"],
    ["30 */2 * * *", ["00:30", "01:30", "03:30"], "a step in the hours comes again"],
  ])("in Berlin, %s comes at %j: %s", (cron, expected) => {
    expect(ticks(cron, "Europe/Berlin", "2026-10-25T00:00", 4)).toEqual(expected);
  });

  // Clocks go from 02:00 to 01:00, at 06:00 UTC.
  it.each([
    ["30 1 * * *", ["05:30"]],
    ["0,30 1-2 * * *", ["05:00", "05:30", "07:00", "07:30"]],
    ["*/30 1 * * *", ["05:00", "05:30", "06:00", "06:30"]],
    ["15 * * * *", ["05:15", "06:15", "07:15", "08:15"]],
  ])("in New York, %s comes at %j", (cron, expected) => {
    expect(ticks(cron, "America/New_York", "2026-11-01T05:00", 4)).toEqual(expected);
  });

  it("continues with the second hour when it is asked in the middle of it", () => {
    const when = { kind: "cron", cron: "*/15 2 * * *", timezone: "Europe/Berlin" } as const;
    expect(times.next(when, Date.parse("2026-10-25T01:20Z"))).toBe(Date.parse("2026-10-25T01:30Z"));
    const fixed = { ...when, cron: "45 2 * * *" };
    expect(times.next(fixed, Date.parse("2026-10-25T01:20Z"))).toBe(Date.parse("2026-10-26T01:45Z"));
  });
});

describe("a cron expression", () => {
  const utc = (cron: string, after: string) => times.next({ kind: "cron", cron, timezone: "UTC" }, Date.parse(`${after}Z`));

  it("means either day when both days are given", () => {
    expect(utc("0 0 13 * 5", "2026-03-13T00:00")).toBe(Date.parse("2026-03-20T00:00Z"));
    expect(utc("0 0 13 * 5", "2026-04-10T00:00")).toBe(Date.parse("2026-04-13T00:00Z"));
  });

  it("may wait years for a leap day", () => {
    expect(utc("0 0 29 2 *", "2096-03-01T00:00")).toBe(Date.parse("2104-02-29T00:00Z"));
  });

  it("comes at the start of March also when it has a day that February lacks", () => {
    expect(utc("0 0 1,31 * *", "2026-02-10T00:00")).toBe(Date.parse("2026-03-01T00:00Z"));
    expect(utc("0 2 */5 * *", "2026-02-27T06:00")).toBe(Date.parse("2026-03-01T02:00Z"));
    expect(utc("0 2 5,30 * *", "2026-02-01T00:00")).toBe(Date.parse("2026-02-05T02:00Z"));
    expect(utc("0 0 1 2 *", "2026-02-28T23:59:59.500")).toBe(Date.parse("2027-02-01T00:00Z"));
  });

  it("never comes on a day that no month has", () => {
    expect(utc("0 0 30 2 *", "2026-03-01T00:00")).toBeNull();
  });

  it("comes after a time, never at it", () => {
    expect(utc("0 3 * * *", "2026-03-01T03:00")).toBe(Date.parse("2026-03-02T03:00Z"));
    expect(utc("0 3 * * *", "2026-03-01T02:59:59.999")).toBe(Date.parse("2026-03-01T03:00Z"));
  });

  it.each([
    ["0 25 * * *", "Invalid value for hour: 25"],
    ["* * * * * *", "requires exactly 5 parts"],
    ["every day", "exactly five"],
    ["5/10 * * * *", "stepping with numeric prefix"],
    ["@reboot", "not supported"],
    ["*".repeat(300), "more than 256 characters"],
  ])("such as %s is refused: %s", (cron, why) => {
    expect(() => utc(cron, "2026-01-01")).toThrow(why);
    expect(() => utc(cron, "2026-01-01")).toThrow(/[^.]\. Expected minute, hour/);
  });

  it("in an unknown time zone is refused", () => {
    const when = { kind: "cron", cron: "0 3 * * *", timezone: "Europe/Atlantis" } as const;
    expect(() => times.next(when, 0)).toThrow('timezone is "Europe/Atlantis", expected the name of a time zone');
  });
});
