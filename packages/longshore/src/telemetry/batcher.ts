// Collects records and sends them in batches, so that a worker makes one request a second and not one a task. Adding never waits. What
// cannot be sent is tried again for a while; a queue that is full drops the newest, which is counted and reported.
//
// One timer or one sending at any time: an idle batcher has neither.

import type { Clock } from "../clock.ts";
import { pause } from "../clock.ts";
import { toError } from "../errors.ts";

export interface BatcherOptions<Item> {
  readonly clock: Clock;
  /** Rejects when it did not arrive. An error with `final: true` will not arrive later either. */
  readonly send: (items: readonly Item[], signal: AbortSignal) => Promise<void>;
  readonly failing: (error: Error) => void;
  readonly working: () => void;
  /** Called once, at the end, with the number of records that were never sent. */
  readonly dropped: (count: number) => void;
}

/** What collectors expect from one request; OpenTelemetry's own number. */
const batchMax = 512;
/** Records that wait. At a kilobyte each they stay below ten megabytes. */
const queueMax = 8_192;
/** The maximum delay before a record is sent as a batch. */
const everyMs = 1_000;
/** A collector that restarts is back within these; then the batch is given up, for newer ones wait. */
const pausesMs = [1_000, 2_000, 5_000, 10_000];
/** How long the end of a worker waits for its last records. */
const closeMsMax = 5_000;

export class Batcher<Item> {
  readonly #options: BatcherOptions<Item>;
  readonly #queue: Item[] = [];
  readonly #closing = new AbortController();
  #disarm: (() => void) | undefined;
  #sending: Promise<void> | undefined;
  #dropped = 0;
  #closed: Promise<void> | undefined;

  constructor(options: BatcherOptions<Item>) {
    this.#options = options;
  }

  add(item: Item): void {
    if (this.#closed !== undefined || this.#queue.length >= queueMax) {
      this.#dropped++;
      return;
    }
    this.#queue.push(item);
    if (this.#sending !== undefined) return;
    if (this.#queue.length >= batchMax) this.#start();
    else this.#arm();
  }

  /** Sends what is left, for a while. Resolves in any case. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { clock, dropped } = this.#options;
    this.#disarm?.();
    const giveUp = clock.at(clock.now() + closeMsMax, () => this.#closing.abort("The worker has stopped."));
    if (this.#sending === undefined) this.#start();
    await this.#sending;
    giveUp();
    this.#dropped += this.#queue.length;
    if (this.#dropped > 0) dropped(this.#dropped);
  }

  #arm(): void {
    const { clock } = this.#options;
    this.#disarm ??= clock.at(clock.now() + everyMs, () => this.#start());
  }

  #start(): void {
    this.#disarm?.();
    this.#disarm = undefined;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
      if (this.#queue.length > 0 && this.#closed === undefined) this.#arm();
    });
  }

  /** Full batches at once; a smaller one waits again, unless this is the end. */
  async #sendAll(): Promise<void> {
    do {
      await this.#sendBatch(this.#queue.splice(0, batchMax));
    } while (!this.#closing.signal.aborted && this.#queue.length >= (this.#closed === undefined ? batchMax : 1));
  }

  async #sendBatch(batch: readonly Item[]): Promise<void> {
    if (batch.length === 0) return;
    const { clock, send, failing, working } = this.#options;
    const { signal } = this.#closing;
    for (let tries = 0; ; tries++) {
      try {
        await send(batch, signal);
        return working();
      } catch (thrown) {
        const error = toError(thrown);
        failing(error);
        const pauseMs = (error as { final?: unknown }).final === true ? undefined : pausesMs[tries];
        if (pauseMs !== undefined) await pause(clock, pauseMs, signal);
        if (pauseMs === undefined || signal.aborted) {
          this.#dropped += batch.length;
          return;
        }
      }
    }
  }
}
