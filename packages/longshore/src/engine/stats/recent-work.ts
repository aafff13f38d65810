// What one worker did in the last quarter of an hour: ends of attempts by minute, and how long attempts took. Small, because there may be
// thousands of workers.

import type { WorkerFigures } from "./statistics.ts";

const minuteMs = 60_000;
const minutes = 15;
/** 0 ms, then below 2, 4, 8 ... milliseconds: up to 12 days. */
const buckets = 31;

export class RecentWork {
  /** Ends of attempts, and those that failed, by minute. */
  readonly #ends = new Uint32Array(minutes);
  readonly #failed = new Uint32Array(minutes);
  /** How many attempts took how long. Halved with each quarter of an hour, so that old ones lose their weight. */
  readonly #times = new Uint32Array(buckets);
  #minute: number;
  #agedAt: number;

  constructor(now: number) {
    this.#minute = Math.floor(now / minuteMs);
    this.#agedAt = this.#minute;
  }

  worked(ms: number, at: number, isFailed: boolean): void {
    this.#advance(at);
    const slot = this.#minute % minutes;
    this.#ends[slot] = (this.#ends[slot] as number) + 1;
    if (isFailed) this.#failed[slot] = (this.#failed[slot] as number) + 1;
    const bucket = ms < 1 ? 0 : Math.min(buckets - 1, 32 - Math.clz32(Math.min(ms, 2 ** 31)));
    this.#times[bucket] = (this.#times[bucket] as number) + 1;
  }

  figures(now: number): WorkerFigures {
    this.#advance(now);
    const sum = (counts: Uint32Array) => counts.reduce((total, count) => total + count, 0);
    // The current minute is not complete: the rest of the one before counts, too.
    const passed = (now % minuteMs) / minuteMs;
    const [current, last] = [this.#ends[this.#minute % minutes] as number, this.#ends[(this.#minute + minutes - 1) % minutes] as number];
    return { perMinute: Math.round(current + last * (1 - passed)), attempts: sum(this.#ends), failed: sum(this.#failed), p95: this.#p95() };
  }

  #p95(): number | null {
    const total = this.#times.reduce((sum, count) => sum + count, 0);
    let left = total * 0.95;
    for (const [bucket, count] of this.#times.entries()) {
      if (count > 0 && left <= count) return bucket === 0 ? 0 : Math.round(2 ** (bucket - 1) * (1 + left / count));
      left -= count;
    }
    return null;
  }

  #advance(now: number): void {
    const minute = Math.floor(now / minuteMs);
    for (let each = Math.max(this.#minute + 1, minute - minutes + 1); each <= minute; each++) {
      this.#ends[each % minutes] = 0;
      this.#failed[each % minutes] = 0;
    }
    this.#minute = Math.max(this.#minute, minute);
    if (minute - this.#agedAt < minutes) return;
    this.#agedAt = minute;
    for (const [bucket, count] of this.#times.entries()) this.#times[bucket] = count >>> 1;
  }
}
