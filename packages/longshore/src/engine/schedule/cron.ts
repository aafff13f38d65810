// The times of a cron expression. A library parses expressions and finds matching local times; this file turns local times into instants. When
// daylight saving begins, some local times do not exist (a gap); when it ends, some exist twice (an overlap). The rule is that of Vixie cron and
// cronie:
//
//   fixed     Neither the minute nor the hour begins with `*`. A time in a gap comes at the end of the gap; one in an overlap comes once.
//   wildcard  All other expressions. A time in a gap does not come; one in an overlap comes twice.

import type { Cron } from "croner";
import { LongshoreError } from "../../core/errors.ts";
import { changeMsMax, type TimeZone } from "./time-zone.ts";

/** Characters of an expression. */
const cronCharsMax = 256;

/** The parser. Loaded when a server gets its first cron expression. */
export type CronParser = (text: string, withSeconds?: boolean) => CronPattern;

export interface CronPattern {
  /** The first matching local time after `local`; null when there is none. */
  next(local: number): number | null;
  readonly isFixed: boolean;
}

export async function loadCronParser(): Promise<CronParser> {
  const { Cron } = await import("croner");
  return (text, withSeconds = false) => {
    const expected = withSeconds ? `second, ${expectedFields}, such as 0 30 3 * * 1-5` : `${expectedFields}, such as 30 3 * * 1-5`;
    if (text.length > cronCharsMax) throw badCron(text.slice(0, 40), `it has more than ${cronCharsMax} characters`, expected);
    let cron: Cron;
    try {
      cron = new Cron(text, withSeconds ? { utcOffset: 0, mode: "6-part", domAndDow: true } : { utcOffset: 0, mode: "5-part" });
    } catch (cause) {
      throw badCron(text, (cause as Error).message.replace(/^CronPattern: /, "").replace(/\.$/, ""), expected, cause);
    }
    const next = (local: number) => cron.nextRun(new Date(local))?.getTime() ?? null;
    return { isFixed: isFixed(text, withSeconds ? 1 : 0), next: (local) => earlier(next(local), afterFebruary(next, local)) };
  };
}

/**
 * Searches again from the last second of February. From any other moment of February, croner 11.0.0 skips the first days of March when the
 * expression has a day that February lacks: for `0 0 1,31 * *` it then finds 31 March.
 */
function afterFebruary(next: (local: number) => number | null, local: number): number | null {
  const date = new Date(local);
  return date.getUTCMonth() === 1 ? next(Date.UTC(date.getUTCFullYear(), 2, 1) - 1_000) : null;
}

function earlier(one: number | null, other: number | null): number | null {
  return one === null || other === null ? (one ?? other) : Math.min(one, other);
}

/** The first instant after `after`; null when there is none. */
export function nextCronTime(pattern: CronPattern, zone: TimeZone, after: number): number | null {
  const offset = zone.offset(after);
  if (!pattern.isFixed) {
    const soon = after + changeMsMax;
    if (zone.offset(soon) < offset) return nextAroundOverlap(pattern, zone, after, zone.changeIn(after, soon));
  }
  let local = pattern.next(after + offset);
  while (local !== null) {
    const { at, exists } = zone.instantOf(local);
    // In an overlap, `instantOf` returns the first of two instants. When that one has passed, the second one is meant.
    const instant = exists && at <= after && !pattern.isFixed ? local - offset : at;
    if (instant > after && (exists || pattern.isFixed)) return instant;
    local = pattern.next(local);
  }
  return null;
}

/** The clocks are set back at `change`, soon after `after`: the local times before the change come again. */
function nextAroundOverlap(pattern: CronPattern, zone: TimeZone, after: number, change: number): number | null {
  const before = zone.offset(after);
  const first = pattern.next(after + before);
  if (first !== null && first - before < change) return first - before;
  const offset = zone.offset(change);
  const again = pattern.next(change + offset - 1);
  if (again === null) return null;
  // At the match, another offset applies.
  return zone.offset(again - offset) === offset ? again - offset : nextCronTime(pattern, zone, change - 1 + changeMsMax);
}

/** `first` is the place of the minute. */
function isFixed(text: string, first: number): boolean {
  const fields = text.trim().split(/\s+/);
  if (fields.length === 1) return fields[0]?.toLowerCase() !== "@hourly";
  return !fields.slice(first, first + 2).some((field) => field.startsWith("*") || field.startsWith("?"));
}

const expectedFields = "minute, hour, day of the month, month and day of the week";

function badCron(text: string, why: string, expected: string, cause?: unknown): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", `cron is ${JSON.stringify(text)}: ${why}. Expected ${expected}.`, {
    cause,
    detail: { field: "cron", expected },
  });
}
