// Figures over time: rings of samples in several resolutions, each with its own length. An event only raises a counter. When a new sample
// begins, and before rings are read, the counters are added to the current sample of each ring. The current values (such as the number of
// ready tasks) are stored when `look` is called.

/** What a sample counts. */
export const counters = ["started", "succeeded", "failed", "cancelled", "timedOut", "claimed", "attemptsFailed"] as const;
/** Values that a sample has from its end. */
export const gauges = ["ready", "held", "workers"] as const;
/** Times in milliseconds, counted by powers of two. */
export const durations = ["wait", "work"] as const;

export type Counter = (typeof counters)[number];
export type Gauge = (typeof gauges)[number];
export type Duration = (typeof durations)[number];

/** 0 ms, then below 2, 4, 8 ... milliseconds: up to 12 days. */
const buckets = 31;
const width = counters.length + gauges.length + durations.length * buckets;
const counterAt = Object.fromEntries(counters.map((name, at) => [name, at])) as Record<Counter, number>;
const gaugeAt = Object.fromEntries(gauges.map((name, at) => [name, counters.length + at])) as Record<Gauge, number>;
const durationAt = Object.fromEntries(durations.map((name, at) => [name, counters.length + gauges.length + at * buckets])) as Record<
  Duration,
  number
>;

/** The resolution of a ring, and its number of samples. */
export interface Level {
  readonly stepMs: number;
  readonly samples: number;
}

/** One ring, the oldest sample first. The last sample is not complete. */
export interface Columns {
  /** When the first sample begins. */
  readonly from: number;
  readonly stepMs: number;
  readonly counts: Readonly<Record<Counter, readonly number[]>>;
  readonly gauges: Readonly<Record<Gauge, readonly number[]>>;
  /** Null where nothing was measured. */
  readonly times: Readonly<Record<Duration, Readonly<Record<"p50" | "p95" | "p99", readonly (number | null)[]>>>>;
}

/** A sample as it is stored: its number since the epoch, and its values that are not 0. */
export interface Sample {
  readonly number: number;
  readonly values: readonly (readonly [at: number, value: number])[];
}

/** How long attempts took; null when there were none. */
export interface WorkTimes {
  readonly count: number;
  readonly p50: number | null;
  readonly p95: number | null;
}

export type GaugeValues = Readonly<Record<Gauge, number>>;

interface Ring extends Level {
  readonly data: Uint32Array;
  /** The number of the current sample since the epoch. */
  current: number;
  /** The first sample of all. */
  first: number;
}

export class Series {
  readonly #rings: Ring[] = [];
  readonly #levels: readonly Level[];
  /** Counted since it was last added to the rings, and whether that is anything. */
  readonly #fresh = new Uint32Array(width);
  #hasFresh = false;
  #gauges: GaugeValues = { ready: 0, held: 0, workers: 0 };
  /** When the current sample of the finest ring ends. */
  #until = Number.NEGATIVE_INFINITY;
  /** When something was last counted. */
  usedAt = 0;

  constructor(levels: readonly Level[]) {
    this.#levels = levels;
  }

  /** Stores the current values. They are used until the next call. */
  look(gauges: GaugeValues, now: number): void {
    this.#gauges = gauges;
    this.#advance(now);
  }

  count(counter: Counter, at: number): void {
    if (at >= this.#until) this.#advance(at);
    this.usedAt = at;
    this.#add(counterAt[counter]);
  }

  time(duration: Duration, ms: number, at: number): void {
    if (at >= this.#until) this.#advance(at);
    this.#add(durationAt[duration] + bucketOf(ms));
  }

  /** The ring with this number. */
  columns(level: number, now: number): Columns {
    this.#advance(now);
    const ring = this.#rings[level] as Ring;
    const first = Math.max(ring.first, ring.current - ring.samples + 1);
    const column = (at: number) => {
      const values: number[] = [];
      for (let sample = first; sample <= ring.current; sample++) values.push(ring.data[placeOf(ring, sample) + at] as number);
      return values;
    };
    const each = <Name extends string, Value>(names: readonly Name[], of: (name: Name) => Value) =>
      Object.fromEntries(names.map((name) => [name, of(name)])) as Record<Name, Value>;
    return {
      from: first * ring.stepMs,
      stepMs: ring.stepMs,
      counts: each(counters, (name) => column(counterAt[name])),
      gauges: each(gauges, (name) => column(gaugeAt[name])),
      times: each(durations, (name) => quantilesOf(ring, first, durationAt[name])),
    };
  }

  /** Sums over the newest samples of a ring. */
  recent(level: number, samples: number, now: number): { readonly counts: Readonly<Record<Counter, number>>; readonly work: WorkTimes } {
    this.#advance(now);
    const ring = this.#rings[level] as Ring;
    const sums = new Uint32Array(width);
    for (let sample = Math.max(ring.first, ring.current - samples + 1); sample <= ring.current; sample++) {
      const place = placeOf(ring, sample);
      for (let at = 0; at < width; at++) sums[at] = (sums[at] as number) + (ring.data[place + at] as number);
    }
    const counts = Object.fromEntries(counters.map((name) => [name, sums[counterAt[name]] as number])) as Record<Counter, number>;
    const spread = sums.subarray(durationAt.work, durationAt.work + buckets);
    const total = spread.reduce((sum, count) => sum + count, 0);
    return { counts, work: { count: total, p50: quantile(spread, total, 0.5), p95: quantile(spread, total, 0.95) } };
  }

  /** The samples of a ring from this number on. */
  samples(level: number, from: number): Sample[] {
    this.#keepFresh();
    const ring = this.#rings[level];
    if (ring === undefined) return [];
    const found: Sample[] = [];
    for (let number = Math.max(from, ring.first, ring.current - ring.samples + 1); number <= ring.current; number++) {
      const values = ring.data.subarray(placeOf(ring, number), placeOf(ring, number) + width);
      found.push({ number, values: [...values].flatMap((value, at) => (value === 0 ? [] : [[at, value] as const])) });
    }
    return found;
  }

  /** Adds the samples of an earlier process. */
  restore(level: number, samples: readonly Sample[], now: number): void {
    this.#advance(now);
    const ring = this.#rings[level] as Ring;
    for (const { number, values } of samples) {
      if (number > ring.current || number <= ring.current - ring.samples) continue;
      ring.first = Math.min(ring.first, number);
      for (const [at, value] of values) {
        const place = placeOf(ring, number) + at;
        if (at < width) ring.data[place] = (ring.data[place] as number) + value;
      }
    }
  }

  #add(at: number): void {
    this.#fresh[at] = (this.#fresh[at] as number) + 1;
    this.#hasFresh = true;
  }

  /** Adds what was counted to the samples that are still current. */
  #keepFresh(): void {
    if (!this.#hasFresh) return;
    for (const ring of this.#rings) {
      const place = placeOf(ring, ring.current);
      for (let at = 0; at < width; at++) ring.data[place + at] = (ring.data[place + at] as number) + (this.#fresh[at] as number);
    }
    this.#fresh.fill(0);
    this.#hasFresh = false;
  }

  #advance(now: number): void {
    this.#keepFresh();
    if (this.#rings.length === 0) {
      for (const level of this.#levels) {
        const current = Math.floor(now / level.stepMs);
        this.#rings.push({ ...level, data: new Uint32Array(level.samples * width), current, first: current });
      }
    }
    for (const ring of this.#rings) advanceTo(ring, Math.floor(now / ring.stepMs), this.#gauges);
    const [finest] = this.#rings as [Ring];
    this.#until = (finest.current + 1) * finest.stepMs;
  }
}

/** Begins the samples up to this one. */
function advanceTo(ring: Ring, sample: number, values: GaugeValues): void {
  const { data, samples } = ring;
  for (let each = Math.max(ring.current + 1, sample - samples + 1); each <= sample; each++) {
    const place = (each % samples) * width;
    data.fill(0, place, place + width);
  }
  for (let each = Math.max(ring.current, sample - samples + 1); each <= sample; each++) {
    for (const name of gauges) data[(each % samples) * width + gaugeAt[name]] = values[name];
  }
  ring.current = Math.max(ring.current, sample);
}

function placeOf({ samples }: Ring, sample: number): number {
  return (sample % samples) * width;
}

function bucketOf(ms: number): number {
  return ms < 1 ? 0 : Math.min(buckets - 1, 32 - Math.clz32(Math.min(ms, 2 ** 31)));
}

function quantilesOf(ring: Ring, first: number, at: number) {
  const p50: (number | null)[] = [];
  const p95: (number | null)[] = [];
  const p99: (number | null)[] = [];
  for (let sample = first; sample <= ring.current; sample++) {
    const place = placeOf(ring, sample) + at;
    const counts = ring.data.subarray(place, place + buckets);
    let total = 0;
    for (const count of counts) total += count;
    p50.push(quantile(counts, total, 0.5));
    p95.push(quantile(counts, total, 0.95));
    p99.push(quantile(counts, total, 0.99));
  }
  return { p50, p95, p99 };
}

/** Within a bucket, times are assumed to be spread evenly. */
function quantile(counts: Uint32Array, total: number, share: number): number | null {
  if (total === 0) return null;
  let left = total * share;
  for (let bucket = 0; bucket < buckets; bucket++) {
    const count = counts[bucket] as number;
    if (count > 0 && left <= count) {
      if (bucket === 0) return 0;
      const from = 2 ** (bucket - 1);
      return Math.round(from + (from * left) / count);
    }
    left -= count;
  }
  return 2 ** (buckets - 1);
}
