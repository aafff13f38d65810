// The readers of run events: how many there are, how many events wait for them, and when each one reads records. One reading may take
// megabytes, and there may be hundreds of readers. So few of them read at the same time, and readers of the same run share a reading.

import { Line } from "../../../../core/line.ts";
import { TokenPlaces } from "../../../../core/token-places.ts";
import { GrpcCode, GrpcError } from "../../../../net/grpc/status.ts";
import type { RunHistoryEvent, Within } from "./event-history.ts";

/** The result of a reading: the events so far of a run, and of the runs that it has started. */
export interface History {
  /** Undefined when the run does not exist. */
  readonly startedAt: number | undefined;
  readonly rootId: string;
  /** The runs, as the wire knows them, whose events belong here, with their places. Runs of items are found by their ids. */
  readonly members: ReadonlyMap<string, Within>;
  readonly events: readonly RunHistoryEvent[];
}

/** How many readings are in progress at once. Each reads the records of a run, in slices. */
const readingMax = 4;
/** Maximum number of waiting events of all readers except the largest: about 200 MB. */
const eventsMax = 500_000;
/** Maximum number of readers. Each costs some work for every change. */
const followersMax = 500;

export class Followers {
  readonly places = new TokenPlaces(followersMax, "readers of events");
  events = 0;
  readonly #reading = new Line(readingMax);
  /** Events are made one at a time. The result of an event may have megabytes, in several forms at once. */
  readonly #making = new Line(1);
  /** Readings that have not begun. */
  readonly #readings = new Map<string, Promise<History>>();

  /** One reading for all readers that wait for the same run. It begins after the last of them has joined, so that none misses a change. */
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

  /**
   * Makes an event and passes it on, one per turn of the event loop. So an event is written, or its slow reader is disconnected, before the
   * next one is made.
   */
  make(make: () => Promise<void>): Promise<void> {
    return this.#making.use(async () => {
      await make();
      await new Promise((resolve) => setImmediate(resolve));
    });
  }

  /**
   * Returns whether a reader with `own` waiting events may have more. Its own events do not count, so that even the largest run can be
   * followed.
   */
  mayHold(own: number, more: number): boolean {
    return this.events - own + more <= eventsMax;
  }

  /** Throws RESOURCE_EXHAUSTED when a reader with `own` waiting events may not have more. */
  checkHold(own: number, more: number): void {
    if (!this.mayHold(own, more))
      throw new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, `${eventsMax} events wait for their readers already, which is the limit`);
  }
}
