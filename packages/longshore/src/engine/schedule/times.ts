// When a schedule ticks: at the times of a cron expression, in equal intervals, or once.

import { createHash } from "node:crypto";
import { type Slices, turnRows } from "../../core/slices/slices.ts";
import { WeightedCache } from "../../core/weighted-cache.ts";
import { type CronParser, type CronPattern, loadCronParser, nextCronTime } from "./cron.ts";
import { TimeZone } from "./time-zone.ts";

/** The rule of a schedule's times. Times are epoch milliseconds. */
export type When =
  | { readonly kind: "cron"; readonly cron: string; readonly timezone: string }
  /** Ticks at the anchor, and at every multiple of the interval before and after the anchor. */
  | { readonly kind: "every"; readonly everyMs: number; readonly anchor: number }
  | { readonly kind: "at"; readonly at: number }
  /**
   * The times of several cron expressions together, from `from` to `until`. These expressions begin with seconds. When they have both a day
   * of the month and a weekday, both must fit.
   */
  | {
      readonly kind: "crons";
      readonly crons: readonly { readonly cron: string; readonly timezone: string }[];
      readonly from: number | null;
      readonly until: number | null;
    };

/** Whether times of this rule need the parser of cron expressions. */
export function isParsed({ kind }: When): boolean {
  return kind === "cron" || kind === "crons";
}

/** How many parsed expressions are kept in memory: each takes 83 kB, and parsing one takes 150 us. */
const patternsMax = 64;
/**
 * In a turn of the event loop, computing one time counts as this many rows. Most times take 10 to 50 us; a Monday that is 29 February takes
 * 200 us.
 */
const nextRows = turnRows / 20;
/** The cost of a time and of parsing an expression, in steps of a transaction's budget. */
const nextSteps = 300;
const parseSteps = 1_500;
/** Times that `last` visits one by one, before it searches. Rare times are few, and the search computes each of them many times. */
const visitedMax = 8;
/** Times of cron expressions are whole minutes, or whole seconds. */
const minuteMs = 60_000;
const secondMs = 1_000;
/** Zones in memory. There are about 600. */
const zonesMax = 100;

export interface TimeRange {
  readonly after: number;
  readonly upTo?: number;
  readonly max: number;
}

/** Computes times. A server has one `Times`, which loads the parser of cron expressions when it gets the first expression. */
export class Times {
  readonly #patterns = new WeightedCache<CronPattern>(patternsMax);
  readonly #zones = new WeightedCache<TimeZone>(zonesMax);
  #parser: CronParser | null = null;
  /** The cost of everything so far: see `Tx.spend`. */
  steps = 0;

  /** Must be awaited before other methods are called with a cron expression. */
  async load(): Promise<void> {
    this.#parser ??= await loadCronParser();
  }

  /** The first time after `after`; null when there is none. Throws LONGSHORE_BAD_INPUT for an invalid rule. */
  next(when: When, after: number): number | null {
    if (when.kind === "at") return when.at > after ? when.at : null;
    if (when.kind === "every") return when.anchor + (Math.floor((after - when.anchor) / when.everyMs) + 1) * when.everyMs;
    if (when.kind === "crons") return this.#nextOfAll(when, after);
    this.steps += nextSteps;
    return nextCronTime(this.#pattern(when.cron), this.#zone(when.timezone), after);
  }

  #nextOfAll({ crons, from, until }: When & { kind: "crons" }, after: number): number | null {
    const begin = from === null ? after : Math.max(after, from - 1);
    let first: number | null = null;
    for (const { cron, timezone } of crons) {
      this.steps += nextSteps;
      const next = nextCronTime(this.#pattern(cron, true), this.#zone(timezone), begin);
      if (next !== null && (first === null || next < first)) first = next;
    }
    return first === null || (until !== null && first > until) ? null : first;
  }

  /**
   * The first times after `after` and up to `upTo`. It waits for turns of the event loop, because a time may be far from the one before.
   */
  async list(when: When, { after, upTo = Number.POSITIVE_INFINITY, max }: TimeRange, slices: Pick<Slices, "turn">): Promise<number[]> {
    const times: number[] = [];
    for (let at = after; times.length < max; ) {
      await slices.turn(nextRows);
      const next = this.next(when, at);
      if (next === null || next > upTo) break;
      times.push(next);
      at = next;
    }
    return times;
  }

  /** The last time up to `upTo`. `first` must be a time of the rule, not after `upTo`. */
  last(when: When, first: number, upTo: number): number {
    let [low, high] = [first, upTo];
    for (let visited = 0; visited < visitedMax; visited++) {
      const next = this.next(when, low);
      if (next === null || next > upTo) return low;
      low = next;
    }
    if (when.kind === "every") return when.anchor + Math.floor((upTo - when.anchor) / when.everyMs) * when.everyMs;
    // A binary search: `low` is a time of the rule, and none is in (high, upTo].
    const unitMs = when.kind === "crons" ? secondMs : minuteMs;
    while (high - low >= unitMs) {
      const middle = low + Math.ceil((high - low) / unitMs / 2) * unitMs;
      const next = this.next(when, middle - 1);
      if (next === null || next > upTo) high = middle - 1;
      else low = next;
    }
    return low;
  }

  #pattern(cron: string, withSeconds = false): CronPattern {
    const key = withSeconds ? `seconds ${cron}` : cron;
    const known = this.#patterns.get(key);
    if (known !== undefined) return known;
    if (this.#parser === null) throw new Error("The parser of cron expressions has not been loaded.");
    this.steps += parseSteps;
    return this.#patterns.set(key, this.#parser(cron, withSeconds));
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
