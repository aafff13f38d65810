// Sends the ids of everything that has changed, every second or every few seconds. Pages with lists and numbers use it, because every
// single change would be too much for them. All readers of one period share one set of ids, so a change costs one addition for each period
// in use.

import type { Clock } from "../../../core/clock.ts";
import type { Statistics } from "../../../engine/stats/statistics.ts";
import type { EventSink } from "../../../net/http/http.ts";
import type { ChangeListener } from "../../server-half.ts";

/** The periods between two frames, in milliseconds. */
export const tickPeriods = [1_000, 2_000, 5_000, 10_000] as const;
/** Ids that one frame names. When more runs have changed, the reader reads its page again. */
const tickRunsMax = 200;

interface TicksDeps {
  readonly clock: Clock;
  readonly statistics: Pick<Statistics, "totals">;
  /** Calls the listener for each change until the returned function is called. */
  listen(listener: ChangeListener): () => void;
}

export class Ticks {
  readonly #deps: TicksDeps;
  readonly #periods = new Map<number, Period>();
  #stopListening: (() => void) | null = null;

  constructor(deps: TicksDeps) {
    this.#deps = deps;
  }

  get readers(): number {
    let readers = 0;
    for (const period of this.#periods.values()) readers += period.readers.size;
    return readers;
  }

  /** Sends frames to the reader until it has disconnected. */
  follow(periodMs: number, sink: EventSink): void {
    const period = this.#periods.get(periodMs) ?? new Period();
    this.#periods.set(periodMs, period);
    const reader = { sink, hasMissed: false };
    period.readers.add(reader);
    this.#stopListening ??= this.#listen();
    sink.send({ event: "ready", data: "{}" });
    if (period.cancel === null) this.#arm(periodMs, period);
    const leave = () => {
      period.readers.delete(reader);
      sink.end();
      if (period.readers.size > 0) return;
      period.cancel?.();
      this.#periods.delete(periodMs);
      if (this.#periods.size > 0) return;
      this.#stopListening?.();
      this.#stopListening = null;
    };
    if (sink.gone.aborted) leave();
    else sink.gone.addEventListener("abort", leave, { once: true });
  }

  #listen(): () => void {
    return this.#deps.listen({
      run: ({ id }) => {
        for (const period of this.#periods.values()) period.changed(id);
      },
      task: () => {
        for (const period of this.#periods.values()) period.tasks++;
      },
    });
  }

  #arm(periodMs: number, period: Period): void {
    const { clock } = this.#deps;
    period.cancel = clock.at(clock.now() + periodMs, () => {
      this.#tick(period);
      this.#arm(periodMs, period);
    });
  }

  #tick(period: Period): void {
    if (!period.hasNews) return;
    const { clock, statistics } = this.#deps;
    const runs = period.runs === null ? null : [...period.runs];
    const data = JSON.stringify({ at: clock.now(), runs, tasks: period.tasks, totals: statistics.totals() });
    period.reset();
    for (const reader of period.readers) {
      const { sink } = reader;
      // A slow reader misses frames, and gets the next one as soon as it can receive again.
      if (sink.full) reader.hasMissed = true;
      else {
        if (reader.hasMissed) sink.send({ event: "lagged", data: '{"missed":null}' });
        reader.hasMissed = !sink.send({ event: "tick", data });
      }
    }
  }
}

class Period {
  readonly readers = new Set<{ readonly sink: EventSink; hasMissed: boolean }>();
  /** Null when there are too many. */
  runs: Set<string> | null = new Set();
  /** Changes of tasks. */
  tasks = 0;
  cancel: (() => void) | null = null;

  get hasNews(): boolean {
    return this.tasks > 0 || this.runs === null || this.runs.size > 0;
  }

  changed(id: string): void {
    this.runs?.add(id);
    if (this.runs !== null && this.runs.size > tickRunsMax) this.runs = null;
  }

  reset(): void {
    this.runs = new Set();
    this.tasks = 0;
  }
}
