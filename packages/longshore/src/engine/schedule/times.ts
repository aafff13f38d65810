// When a schedule ticks: at the times of a cron expression, in equal intervals, or once.

import { createHash } from "node:crypto";
import { WeightedCache } from "../../core/weighted-cache.ts";
import { type CronParser, type CronPattern, loadCronParser, nextCronTime } from "./cron.ts";
import { TimeZone } from "./time-zone.ts";

/** The rule of a schedule's times. Times are epoch milliseconds. */
export type When =
  | { readonly kind: "cron"; readonly cron: string; readonly timezone: string }
  /** At the anchor, and at every multiple of the interval before and after it. */
  | { readonly kind: "every"; readonly everyMs: number; readonly anchor: number }
  | { readonly kind: "at"; readonly at: number };

/** Parsed expressions in memory: each takes 83 kB, and parsing one takes 150 us. */
const patternsMax = 64;
/** Zones in memory. There are about 600. */
const zonesMax = 100;

/** Computes times. A server has one of these, which loads the parser of cron expressions with the first one. */
export class Times {
  readonly #patterns = new WeightedCache<CronPattern>(patternsMax);
  readonly #zones = new WeightedCache<TimeZone>(zonesMax);
  #parser: CronParser | null = null;

  /** Must be awaited before other methods are called with a cron expression. */
  async load(): Promise<void> {
    this.#parser ??= await loadCronParser();
  }

  /** The first time after `after`; null when there is none. Throws LONGSHORE_BAD_INPUT for an invalid rule. */
  next(when: When, after: number): number | null {
    if (when.kind === "at") return when.at > after ? when.at : null;
    if (when.kind === "every") return when.anchor + (Math.floor((after - when.anchor) / when.everyMs) + 1) * when.everyMs;
    return nextCronTime(this.#pattern(when.cron), this.#zone(when.timezone), after);
  }

  /** The first `max` times after `after`. */
  list(when: When, after: number, max: number): number[] {
    const times: number[] = [];
    for (let at = this.next(when, after); at !== null && times.length < max; at = this.next(when, at)) times.push(at);
    return times;
  }

  /** The last time up to `upTo`. `first` must be a time of the rule, not after `upTo`. A binary search: times between them are not visited. */
  last(when: When, first: number, upTo: number): number {
    let [low, high] = [first, upTo];
    // `low` is a time of the rule, and none is in (high, upTo].
    while (low < high) {
      const middle = low + Math.ceil((high - low) / 2);
      const next = this.next(when, middle - 1);
      if (next === null || next > upTo) high = middle - 1;
      else low = next;
    }
    return low;
  }

  #pattern(cron: string): CronPattern {
    const known = this.#patterns.get(cron);
    if (known !== undefined) return known;
    if (this.#parser === null) throw new Error("The parser of cron expressions has not been loaded.");
    return this.#patterns.set(cron, this.#parser(cron));
  }

  #zone(name: string): TimeZone {
    return this.#zones.get(name) ?? this.#zones.set(name, new TimeZone(name));
  }
}

/** The delay of a tick: below `jitterMs`, and always the same for this schedule and tick. */
export function jitterOf(name: string, tick: number, jitterMs: number): number {
  if (jitterMs === 0) return 0;
  return createHash("sha256").update(`${name} ${tick}`).digest().readUIntBE(0, 6) % jitterMs;
}
