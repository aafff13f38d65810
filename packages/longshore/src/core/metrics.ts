// A small metrics registry and its Prometheus text (exposition format 0.0.4). The owner of a metric looks up a series once. After that, an
// update costs a few additions and comparisons. The rest is computed when the metrics are read.

export interface Counter {
  add(by?: number): void;
}

export interface Gauge {
  set(value: number): void;
  add(by: number): void;
}

export interface Histogram {
  observe(value: number): void;
}

/** One metric name with its label names. `with` returns the series of these label values and creates it on first use. */
export interface Family<Series> {
  with(...values: string[]): Series;
}

export interface Sample {
  labels: readonly string[];
  value: number;
}

export interface Metrics {
  counter(name: string, help: string, labels?: readonly string[]): Family<Counter>;
  gauge(name: string, help: string, labels?: readonly string[]): Family<Gauge>;
  /**
   * `bounds` are upper bounds in rising order; the last bucket, without a bound, is added automatically. `max` limits the number of series,
   * because each bucket of each series is a line of text. Further series are counted as `other`.
   */
  histogram(name: string, help: string, bounds: readonly number[], labels?: readonly string[], max?: number): Family<Histogram>;
  /** A metric whose value is computed when it is read. When `read` throws, the metric is missing from that reading. */
  sampled(kind: "counter" | "gauge", name: string, help: string, read: () => number | Iterable<Sample>, labels?: readonly string[]): void;
  /** Registers work that must run before some of the values can be read, such as counting large sets. */
  before(prepare: () => Promise<void>): void;
  /** The whole registry as Prometheus text, after all work registered with `before`. */
  read(): Promise<string>;
  /** The whole registry as Prometheus text, immediately. */
  text(): string;
  /** Returns what counters and histograms have gathered, and resets them: for a process whose metrics another process reports. */
  drain(): MetricDelta[];
  /** Adds the result of `drain` of another registry with the same families. Unknown families are ignored. */
  absorb(deltas: readonly MetricDelta[]): void;
}

export interface MetricDelta {
  readonly name: string;
  readonly labels: readonly string[];
  /** A counter's growth, or a histogram's counts by bucket followed by its sum. */
  readonly growth: number | readonly number[];
}

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

/**
 * The limit of series per family. A label with unlimited values (such as an id) must not fill the memory: further series are counted as
 * `other`.
 */
const seriesMax = 2_000;

interface Entry {
  readonly kind: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: readonly string[];
  /** The result of `counter`, `gauge` or `histogram`; absent for sampled metrics. */
  readonly family: unknown;
  lines(name: string): Iterable<string>;
}

export interface MetricsOptions {
  /** Whether a family without series is named in the text too. */
  readonly nameEmpty?: boolean;
}

export function createMetrics({ nameEmpty = false }: MetricsOptions = {}): Metrics {
  const entries = new Map<string, Entry>();
  const preparations: (() => Promise<void>)[] = [];

  /** A second call for the same family returns the first one; a different family with a name in use is a programming error. */
  function register(name: string, entry: Entry): Entry {
    if (!/^[a-z_][a-z0-9_]*$/.test(name)) throw new TypeError(`Metric name ${JSON.stringify(name)} must match [a-z_][a-z0-9_]*.`);
    const known = entries.get(name);
    if (known === undefined) {
      entries.set(name, entry);
      return entry;
    }
    if (known.kind !== entry.kind || known.labels.join() !== entry.labels.join() || entry.family === undefined) {
      throw new TypeError(`Metric ${name} is registered already, as a ${known.kind} of [${known.labels.join()}].`);
    }
    return known;
  }

  function scalar(kind: "counter" | "gauge", name: string, help: string, labels: readonly string[]): Family<Scalar> {
    const family = new SeriesMap(labels, () => new Scalar());
    const lines = function* (called: string) {
      for (const [values, series] of family.all()) yield `${called}${labelText(labels, values)} ${series.value}`;
    };
    return register(name, { kind, help, labels, family, lines }).family as SeriesMap<Scalar>;
  }

  function text(): string {
    let text = "";
    for (const [name, entry] of entries) {
      let lines = "";
      for (const line of entry.lines(name)) lines += `${line}\n`;
      if (lines !== "" || nameEmpty) text += `# HELP ${name} ${escapeHelp(entry.help)}\n# TYPE ${name} ${entry.kind}\n${lines}`;
    }
    return text;
  }

  return {
    counter: (name, help, labels = []) => scalar("counter", name, help, labels),
    gauge: (name, help, labels = []) => scalar("gauge", name, help, labels),
    histogram(name, help, bounds, labels = [], max = seriesMax) {
      const family = new SeriesMap(labels, () => new Buckets(bounds), max);
      const lines = function* (called: string) {
        for (const [values, series] of family.all()) yield* series.lines(called, labels, values);
      };
      return register(name, { kind: "histogram", help, labels, family, lines }).family as SeriesMap<Buckets>;
    },
    sampled(kind, name, help, read, labels = []) {
      register(name, { kind, help, labels, family: undefined, lines: (called) => sampledLines(called, labels, read) });
    },
    before: (prepare) => void preparations.push(prepare),
    async read() {
      for (const prepare of preparations) await prepare();
      return text();
    },
    text,
    drain: () => [...entries].flatMap(([name, { kind, family }]) => (kind === "gauge" ? [] : drained(name, family))),
    absorb(deltas) {
      for (const { name, labels, growth } of deltas) {
        const { family, kind } = entries.get(name) ?? {};
        if (family instanceof SeriesMap && kind !== "gauge") (family as SeriesMap<Growing>).with(...labels).grow(growth);
      }
    },
  };
}

function drained(name: string, family: unknown): MetricDelta[] {
  if (!(family instanceof SeriesMap)) return [];
  return [...(family as SeriesMap<Growing>).all()].flatMap(([labels, series]) => {
    const growth = series.take();
    return growth === undefined ? [] : [{ name, labels, growth }];
  });
}

/** A series whose growth can be moved from one process to another. */
interface Growing {
  /** Returns undefined when the series has not grown. */
  take(): number | readonly number[] | undefined;
  grow(by: number | readonly number[]): void;
}

class SeriesMap<Series> implements Family<Series> {
  private readonly series = new Map<string, { values: readonly string[]; series: Series }>();
  private readonly labels: readonly string[];
  private readonly make: () => Series;
  private readonly max: number;

  constructor(labels: readonly string[], make: () => Series, max = seriesMax) {
    this.labels = labels;
    this.make = make;
    this.max = max;
  }

  with(...values: string[]): Series {
    if (values.length !== this.labels.length) throw new TypeError(`Expected values for [${this.labels.join()}], got ${values.length}.`);
    const key = values.join("\u0000");
    const known = this.series.get(key);
    if (known !== undefined) return known.series;
    if (this.series.size >= this.max && values.some((value) => value !== "other")) return this.with(...values.map(() => "other"));
    const series = this.make();
    this.series.set(key, { values, series });
    return series;
  }

  *all(): Iterable<[readonly string[], Series]> {
    for (const { values, series } of this.series.values()) yield [values, series];
  }
}

class Scalar implements Counter, Gauge, Growing {
  value = 0;

  add(by = 1): void {
    this.value += by;
  }

  set(value: number): void {
    this.value = value;
  }

  take(): number | undefined {
    const { value } = this;
    this.value = 0;
    return value === 0 ? undefined : value;
  }

  grow(by: number | readonly number[]): void {
    if (typeof by === "number") this.value += by;
  }
}

class Buckets implements Histogram, Growing {
  private readonly bounds: readonly number[];
  private readonly counts: number[];
  private sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.bounds.length && value > (this.bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += value;
  }

  take(): readonly number[] | undefined {
    if (this.counts.every((count) => count === 0)) return undefined;
    const growth = [...this.counts, this.sum];
    this.counts.fill(0);
    this.sum = 0;
    return growth;
  }

  grow(by: number | readonly number[]): void {
    if (typeof by === "number" || by.length !== this.counts.length + 1) return;
    for (const at of this.counts.keys()) this.counts[at] = (this.counts[at] as number) + (by[at] as number);
    this.sum += by.at(-1) as number;
  }

  *lines(name: string, labels: readonly string[], values: readonly string[]): Iterable<string> {
    let total = 0;
    for (const [at, count] of this.counts.entries()) {
      total += count;
      const bound = at < this.bounds.length ? String(this.bounds[at]) : "+Inf";
      yield `${name}_bucket${labelText([...labels, "le"], [...values, bound])} ${total}`;
    }
    yield `${name}_sum${labelText(labels, values)} ${this.sum}`;
    yield `${name}_count${labelText(labels, values)} ${total}`;
  }
}

function sampledLines(name: string, labels: readonly string[], read: () => number | Iterable<Sample>): string[] {
  try {
    const answer = read();
    const samples = typeof answer === "number" ? [{ labels: [], value: answer }] : [...answer];
    return samples.map((sample) => `${name}${labelText(labels, sample.labels)} ${sample.value}`);
  } catch {
    // A store that is closing must not remove the other metrics; only this metric is missing.
    return [];
  }
}

function labelText(names: readonly string[], values: readonly string[]): string {
  if (names.length === 0) return "";
  return `{${names.map((name, at) => `${name}="${escapeLabel(values[at] ?? "")}"`).join(",")}}`;
}

function escapeLabel(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

function escapeHelp(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}
