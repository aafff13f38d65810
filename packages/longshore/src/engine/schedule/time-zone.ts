// Local times of time zones. A zone changes its offset when daylight saving begins or ends: then some local times do not exist (a gap), or
// exist twice (an overlap). Times are milliseconds; a local time is written as the UTC time that shows the same on a clock.

import { LongshoreError } from "../../core/errors.ts";

/** The largest change of an offset that is supported. Larger changes moved a country across the date line, and are in the past. */
export const changeMsMax: number = 3 * 3_600_000;
/** An approximate time differs from the true time by at most this much. */
const nearMs = 2 * changeMsMax;

export class TimeZone {
  readonly name: string;
  readonly #format: Intl.DateTimeFormat | null;

  /** Throws LONGSHORE_BAD_INPUT for an unknown zone. */
  constructor(name: string) {
    this.name = name;
    this.#format = name === "UTC" ? null : formatOf(name);
  }

  /** Local time minus UTC at an instant. */
  offset(at: number): number {
    if (this.#format === null) return 0;
    // Formats a time such as `3 PM GMT-03:30`; the offset zero is `GMT`. This is the fastest way to get an offset: it takes 1.4 us, and
    // formatting the parts of a whole date takes 8.9 us.
    const found = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(this.#format.format(at));
    if (found === null) throw new Error(`The time zone ${this.name} has no offset at ${at}.`);
    const [, sign, hours = "0", minutes = "0", seconds = "0"] = found;
    const size = (Number(hours) * 3_600 + Number(minutes) * 60 + Number(seconds)) * 1_000;
    return sign === "-" ? -size : size;
  }

  /** The first instant at which clocks show this local time. For a local time in a gap: the end of the gap. */
  instantOf(local: number): { at: number; exists: boolean } {
    const about = local - this.offset(local);
    const offsets = [this.offset(about - nearMs), this.offset(about + nearMs)] as const;
    if (offsets[0] === offsets[1]) return { at: local - offsets[0], exists: true };
    const at = Math.min(...offsets.map((offset) => local - offset).filter((instant) => instant + this.offset(instant) === local));
    if (at !== Number.POSITIVE_INFINITY) return { at, exists: true };
    return { at: this.changeIn(about - nearMs, about + nearMs), exists: false };
  }

  /** The instant in (after, upTo] from which on another offset applies. The offsets of the two must differ. */
  changeIn(after: number, upTo: number): number {
    const before = this.offset(after);
    let [low, high] = [after, upTo];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.offset(middle) === before) low = middle;
      else high = middle;
    }
    return high;
  }
}

function formatOf(name: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat("en-US", { timeZone: name, hour: "numeric", timeZoneName: "longOffset" });
  } catch (cause) {
    const expected = "the name of a time zone, such as Europe/Berlin or UTC";
    throw new LongshoreError("LONGSHORE_BAD_INPUT", `timezone is ${JSON.stringify(name)}, expected ${expected}.`, {
      cause,
      detail: { field: "timezone", expected },
    });
  }
}
