// The events that wait for one listener. They are handed over in order, one at a time, outside the path of the work; a listener that
// returns a promise gets the next event when it has settled. The queue is bounded: what finds no place is dropped and counted.

import { toError } from "../core/errors.ts";

/** Several seconds of a busy worker's events. A listener that is further behind will not catch up, and memory is not for waiting. */
export const waitingMax = 10_000;
/** After this many events in a row the event loop gets its turn, so that a burst of events delays no poll and no heartbeat. */
const turnMax = 100;

export interface QueueTroubles {
  readonly dropped: () => void;
  /** Logged once for a listener: a listener that throws each time would fill the log. */
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

  /** What waits is forgotten. */
  close(): void {
    this.#closed = true;
    this.#waiting = [];
  }

  /** Resolves when nothing waits. */
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
      // A listener watches; its mistakes are not the worker's.
      if (!this.#failed) this.#troubles.failed(toError(thrown));
      this.#failed = true;
    }
  }
}
