// Those who follow the events of runs: how many there are, how much waits for them, and who reads and makes what at which time. What one
// reads may have megabytes and there may be hundreds of them, so few do so at once, and those that want the same share it.

import { GrpcCode, GrpcError } from "../../../../net/grpc/status.ts";
import type { RunHistoryEvent, Within } from "./event-history.ts";

/** What the records of a run, and of those that it has started, say so far. */
export interface History {
  /** Undefined when there is no such run. */
  readonly startedAt: number | undefined;
  readonly rootId: string;
  /** Runs that the wire knows and whose events belong here, with their places. Those of their items are found by their ids. */
  readonly members: ReadonlyMap<string, Within>;
  readonly events: readonly RunHistoryEvent[];
}

/** Each reads the records of a run, in slices. */
const readingMax = 4;
/** Events that wait for all readers together, besides those of one: about 200 MB. */
const eventsMax = 500_000;
/** Readers at once. Each costs its share of every change. */
const followersMax = 500;

export class Followers {
  readonly open = new Set<object>();
  events = 0;
  readonly #reading = new Line(readingMax);
  /** An event may have a result of megabytes, in several forms until it is handed over. */
  readonly #making = new Line(1);
  /** Those that have not begun. */
  readonly #readings = new Map<string, Promise<History>>();

  /** Throws RESOURCE_EXHAUSTED when there is no room for another. */
  checkRoom(): void {
    if (this.open.size < followersMax) return;
    throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `${followersMax} readers follow events already, which is the limit`);
  }

  /**
   * One reading for all that wait for the same. It begins after the last of them has come, so that what is changed during it is reported to
   * each of them again.
   */
  read(key: string, read: () => Promise<History>): Promise<History> {
    const waiting = this.#readings.get(key);
    if (waiting !== undefined) return waiting;
    const reading = this.#reading.use(async () => {
      await new Promise((resolve) => setImmediate(resolve));
      this.#readings.delete(key);
      return read();
    });
    this.#readings.set(key, reading);
    return reading;
  }

  /** Makes an event and hands it over: one in a turn of the event loop, so that it is written, or its reader cut, before the next is made. */
  make(make: () => Promise<void>): Promise<void> {
    return this.#making.use(async () => {
      await make();
      await new Promise((resolve) => setImmediate(resolve));
    });
  }

  /** Whether one that has so many events waiting may have more. What it has itself does not count, so that the largest run can be followed. */
  mayHold(own: number, more: number): boolean {
    return this.events - own + more <= eventsMax;
  }

  /** Throws RESOURCE_EXHAUSTED when one that has so many events waiting may not have more. */
  checkHold(own: number, more: number): void {
    if (!this.mayHold(own, more))
      throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `${eventsMax} events wait for their readers already, which is the limit`);
  }
}

/** So many work at once; the others wait, with nothing in memory, in the order in which they came. */
export class Line {
  readonly #max: number;
  #working = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#working < this.#max) this.#working++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#working--;
      else next();
    }
  }
}
