// Compares the times of cron expressions with a second way to compute them, as cronie does it: test each minute of some days around changes
// of daylight saving.

import fc from "fast-check";
import { beforeAll, expect, it } from "vitest";
import { Times } from "./times.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** Moments around which clocks change, or do not. Lord Howe moves by half an hour, Havana and Beirut at midnight, Troll by two hours. */
const places: readonly (readonly [timezone: string, around: string])[] = [
  ["Europe/Berlin", "2026-03-29T01:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00Z"],
  ["America/New_York", "2026-03-08T07:00Z"],
  ["America/New_York", "2026-11-01T06:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30Z"],
  ["America/Havana", "2026-03-08T05:00Z"],
  ["America/Havana", "2026-11-01T05:00Z"],
  ["Asia/Beirut", "2026-03-28T22:00Z"],
  ["Asia/Beirut", "2026-10-24T21:00Z"],
  ["Antarctica/Troll", "2026-03-29T01:00Z"],
  ["Antarctica/Troll", "2026-10-25T01:00Z"],
  ["America/St_Johns", "2026-11-01T04:30Z"],
  ["Asia/Kolkata", "2026-06-01T00:00Z"],
  ["UTC", "2026-02-28T12:00Z"],
];

/** The local time of each minute from 30 hours before to 30 hours after. */
function minutesOf(timezone: string, around: string): { at: number; local: number }[] {
  const format = new Intl.DateTimeFormat("en-US", {
    ...{ timeZone: timezone, hourCycle: "h23", year: "numeric", month: "numeric", day: "numeric", hour: "numeric", minute: "numeric" },
  });
  const localOf = (at: number) => {
    const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
    const { year = 0, month = 0, day = 0, hour = 0, minute = 0 } = parts;
    return Date.UTC(year, month - 1, day, hour, minute);
  };
  const start = Date.parse(around) - 30 * hourMs;
  return Array.from({ length: 60 * 60 }, (_, at) => ({ at: start + at * minuteMs, local: localOf(start + at * minuteMs) }));
}

const field = (min: number, max: number) => {
  const value = fc.integer({ min, max });
  const range = fc.tuple(value, value).map(([one, other]) => [Math.min(one, other), Math.max(one, other)] as const);
  const step = fc.integer({ min: 1, max: Math.min(max, 20) });
  const part = fc.oneof(
    value.map(String),
    range.map(([from, to]) => `${from}-${to}`),
    fc.tuple(range, step).map(([[from, to], by]) => `${from}-${to}/${by}`),
  );
  return fc.oneof(
    { weight: 2, arbitrary: fc.constant("*") },
    { weight: 1, arbitrary: step.map((by) => `*/${by}`) },
    { weight: 4, arbitrary: value.map(String) },
    { weight: 3, arbitrary: fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join(",")) },
  );
};
const anyDay = (days: fc.Arbitrary<string>) => fc.oneof({ weight: 3, arbitrary: fc.constant("*") }, { weight: 1, arbitrary: days });
const hours = fc.oneof(field(0, 23), field(0, 4), fc.constantFrom("2", "1-3", "2,14", "0", "*/2"));
const expression = fc
  .tuple(field(0, 59), hours, anyDay(field(1, 31)), anyDay(field(1, 12)), anyDay(field(0, 6)))
  .map((fields) => fields.join(" "));

function valuesOf(text: string, min: number, max: number): Set<number> {
  const values = new Set<number>();
  for (const part of text.split(",")) {
    const [range = "", by = "1"] = part.split("/");
    const [from = min, to = range === "*" ? max : from] = range === "*" ? [min, max] : range.split("-").map(Number);
    for (let value = from; value <= to; value += Number(by)) values.add(value);
  }
  return values;
}

function matches(cron: string): (local: number) => boolean {
  const [minutes = "", hoursText = "", days = "", months = "", weekdays = ""] = cron.split(" ");
  const [minute, hour, day] = [valuesOf(minutes, 0, 59), valuesOf(hoursText, 0, 23), valuesOf(days, 1, 31)];
  const [month, weekday] = [valuesOf(months, 1, 12), valuesOf(weekdays, 0, 6)];
  return (local) => {
    const date = new Date(local);
    if (!minute.has(date.getUTCMinutes()) || !hour.has(date.getUTCHours()) || !month.has(date.getUTCMonth() + 1)) return false;
    const [isDay, isWeekday] = [day.has(date.getUTCDate()), weekday.has(date.getUTCDay())];
    return days === "*" ? isWeekday : weekdays === "*" ? isDay : isDay || isWeekday;
  };
}

/** What cronie does each minute: wildcard jobs run when the clock matches; others when a time that the clock has not shown yet is reached. */
function minuteByMinute(cron: string, minutes: readonly { at: number; local: number }[]): number[] {
  const isMatch = matches(cron);
  const isWild = cron
    .split(" ")
    .slice(0, 2)
    .some((text) => text.startsWith("*"));
  if (isWild) return minutes.filter(({ local }) => isMatch(local)).map(({ at }) => at);
  const found: number[] = [];
  let shown = (minutes[0]?.local ?? 0) - minuteMs;
  for (const { at, local } of minutes) {
    let isDue = false;
    for (; shown < local; shown += minuteMs) if (isMatch(shown + minuteMs)) isDue = true;
    if (isDue) found.push(at);
  }
  return found;
}

const times = new Times();
beforeAll(() => times.load());

it.each(places)("the times in %s around %s are those that a check of every minute finds", (timezone, around) => {
  const minutes = minutesOf(timezone, around);
  const start = minutes[0]?.at ?? 0;
  const end = start + minutes.length * minuteMs;
  fc.assert(
    fc.property(expression, (cron) => {
      const when = { kind: "cron", cron, timezone } as const;
      const found: number[] = [];
      for (let at = times.next(when, start - 1); at !== null && at < end; at = times.next(when, at)) found.push(at);
      expect(found.map((at) => new Date(at).toISOString())).toEqual(minuteByMinute(cron, minutes).map((at) => new Date(at).toISOString()));
    }),
    { numRuns: 60 },
  );
});

it("the last time up to a moment is the last of the list", () => {
  fc.assert(
    fc.property(expression, fc.integer({ min: 1, max: 3 * dayMs }), (cron, ms) => {
      const when = { kind: "cron", cron, timezone: "Europe/Berlin" } as const;
      const from = Date.parse("2026-10-24T00:00Z");
      const first = times.next(when, from);
      fc.pre(first !== null && first <= from + ms);
      const all: number[] = [];
      for (let at: number | null = first; at !== null && at <= from + ms; at = times.next(when, at)) all.push(at);
      expect(times.last(when, all[0] as number, from + ms)).toBe(all.at(-1));
    }),
    { numRuns: 40 },
  );
});
