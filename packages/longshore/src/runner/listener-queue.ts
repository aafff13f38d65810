// The queue of events for one listener. They are delivered in order, one at a time, outside the path of the work. A listener that returns a
// promise receives the next event when the promise has settled. The queue is bounded: events that do not fit are dropped and counted.

import { toError } from "../core/errors.ts";

/** Maximum length: several seconds of a busy worker's events. A listener that is further behind cannot catch up any more. */
export const waitingMax = 10_000;
/** After this many events in a row the event loop gets a turn: a burst of events must delay no poll and no heartbeat. */
const turnMax = 100;

export interface QueueTroubles {
  readonly dropped: () => void;
  /** Called only once for each listener, because a listener that throws each time would fill the log. */
  readonly failed: (error: Error) => void;
}

export class ListenerQueue {
  readonly #listener: (event: unknown) => unknown;
  readonly #troubles: QueueTroubles;
  #waiting: unknown[] = [];
  #delivering: Promise<void> | undefined;
  #failed = false;
  #closed = false;

  constructor(listener: (event: unknown) => unknown, troubles: QueueTroubles) {
    this.#listener = listener;
    this.#troubles = troubles;
  }

  add(event: unknown): void {
    if (this.#closed) return;
    if (this.#waiting.length >= waitingMax) return this.#troubles.dropped();
    this.#waiting.push(event);
    this.#delivering ??= this.#deliver();
  }

  /** Drops the waiting events. */
  close(): void {
    this.#closed = true;
    this.#waiting = [];
  }

  /** Resolves when the queue is empty. */
  settled(): Promise<void> {
    return this.#delivering ?? Promise.resolve();
  }

  async #deliver(): Promise<void> {
    while (this.#waiting.length > 0) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      for (const event of this.#waiting.splice(0, turnMax)) await this.#tell(event);
    }
    this.#delivering = undefined;
  }

  async #tell(event: unknown): Promise<void> {
    if (this.#closed) return;
    try {
      await this.#listener(event);
    } catch (thrown) {
      // A failure of a listener must not affect the worker.
      if (!this.#failed) this.#troubles.failed(toError(thrown));
      this.#failed = true;
    }
  }
}
