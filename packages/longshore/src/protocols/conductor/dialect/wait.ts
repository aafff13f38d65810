// How long a WAIT waits. A duration, such as `1 days 2 hours 3 minutes 4 seconds`, or a moment, such as `2026-11-16 09:30 Europe/Berlin`. A
// moment without a time zone is in the zone of the server.

import type { JsonObject } from "../../../core/json/json.ts";
import { javaText } from "./java-text.ts";

const untilForm = /^(\d{4})-(\d{1,2})-(\d{1,2})(?:[ ]+(\d{1,2}):(\d{1,2})(?:[ ]+(\S.*))?)?$/;

/** Maximum: a hundred years. */
const durationMsMax = 100 * 366 * 86_400_000;

/** The words for each unit, largest unit first, and its milliseconds. */
const units: readonly { readonly words: ReadonlySet<string>; readonly ms: number }[] = [
  { words: new Set(["days", "day", "d"]), ms: 86_400_000 },
  { words: new Set(["hours", "hour", "hrs", "hr", "h"]), ms: 3_600_000 },
  { words: new Set(["minutes", "minute", "mins", "min", "m"]), ms: 60_000 },
  { words: new Set(["seconds", "second", "secs", "sec", "s"]), ms: 1_000 },
];
/** Maximum length of a duration. The longest one has four numbers of ten digits and four words. */
const durationCharsMax = 1_000;

/**
 * Milliseconds, or null when the text is not a duration. A blank text is not a duration; `0 s` is. Each unit appears at most once, larger
 * units first.
 */
export function parseDuration(text: string): number | null {
  const trimmed = text.length > durationCharsMax ? text.trim() : text;
  if (trimmed.length > durationCharsMax) return null;
  const words = trimmed.toLowerCase().match(/\d+|[a-z]+|[^\s\da-z]/g) ?? [];
  let ms = 0;
  let unit = 0;
  for (let at = 0; at < words.length; at += 2) {
    const [count = "", word = ""] = words.slice(at, at + 2);
    while (unit < units.length && !units[unit]?.words.has(word)) unit++;
    const found = units[unit++];
    if (found === undefined || !/^\d{1,10}$/.test(count)) return null;
    ms += Number(count) * found.ms;
  }
  return words.length === 0 || ms > durationMsMax ? null : ms;
}

/** Milliseconds since the epoch, or null when the text is not a moment. `zone` is the zone for texts that name none. */
export function parseUntil(text: string, zone: string = localZone()): number | null {
  const found = untilForm.exec(text.trim());
  if (found === null) return null;
  const [year, month, day, hour, minute] = found.slice(1, 6).map((digits) => Number(digits ?? 0)) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const wall = Date.UTC(year, month - 1, day, hour, minute);
  const date = new Date(wall);
  // The 31st of February is a mistake. It must not become the 3rd of March.
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day || hour > 23 || minute > 59) return null;
  return toMoment(wall, found[6] ?? zone);
}

function localZone(): string {
  return Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Abbreviations that people write but that the zone database does not have as zones. */
const abbreviations: { readonly [name: string]: string } = {
  Z: "UTC",
  PST: "America/Los_Angeles",
  PDT: "America/Los_Angeles",
  MST: "America/Denver",
  MDT: "America/Denver",
  CST: "America/Chicago",
  CDT: "America/Chicago",
  EST: "America/New_York",
  EDT: "America/New_York",
  CET: "Europe/Paris",
  CEST: "Europe/Paris",
  BST: "Europe/London",
  IST: "Asia/Kolkata",
  JST: "Asia/Tokyo",
};

/** The moment at which clocks in `zone` show `wall`. */
function toMoment(wall: number, zone: string): number | null {
  const fixed = /^(?:GMT|UTC)?([+-])(\d{1,2}):?(\d{2})?$/i.exec(zone.trim());
  if (fixed !== null) {
    const offset = (Number(fixed[2]) * 60 + Number(fixed[3] ?? 0)) * 60_000;
    return fixed[1] === "+" ? wall - offset : wall + offset;
  }
  const shows = clockOf(abbreviations[zone.trim().toUpperCase()] ?? zone.trim());
  if (shows === null) return null;
  // Repeated once: the first guess may be on the other side of a clock change.
  let moment = wall;
  for (let round = 0; round < 2; round++) moment += wall - shows(moment);
  return moment;
}

/** What a clock in `zone` shows at a moment, as if it were UTC; null for an unknown zone. */
function clockOf(zone: string): ((moment: number) => number) | null {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en-US", {
      timeZone: zone,
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  } catch {
    // Intl throws for zones that it does not know.
    return null;
  }
  return (moment) => {
    const fields = Object.fromEntries(format.formatToParts(moment).map(({ type, value }) => [type, Number(value)]));
    const { year, month, day, hour, minute, second } = fields as { [field: string]: number };
    return Date.UTC(year as number, (month as number) - 1, day, hour, minute, second);
  };
}

export type WaitUntil = { dueAt: number } | { signal: true } | { failed: string };

/** The time at which a WAIT with this input ends without a report; null if it never does. `zone` is as in `parseUntil`. */
export function waitUntil(input: Readonly<JsonObject>, now: number, zone?: string): WaitUntil {
  const duration = javaText(input.duration ?? "").trim();
  const until = javaText(input.until ?? "").trim();
  if (duration !== "" && until !== "") return { failed: "Both 'duration' and 'until' specified. Please provide only one input" };
  if (duration !== "") {
    const ms = parseDuration(duration);
    return ms === null ? { failed: `Not valid duration: ${duration}` } : { dueAt: now + ms };
  }
  if (until === "") return { signal: true };
  const moment = parseUntil(until, zone);
  return moment === null ? { failed: `Unable to parse the date: ${until}` } : { dueAt: Math.max(now, moment) };
}
