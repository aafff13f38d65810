// Keeps a plugin's process (or a connection) alive: when it ends, it is started again. Callers wait until it is up.
//
// down: nothing runs; it is started after a pause
// starting: it has been started, but is not usable yet
// up: usable, until it ends or a caller replaces it
// stopped: permanently

import { type Backoff, backoffMs } from "../../../../core/backoff.ts";
import { type Clock, pause } from "../../../../core/clock.ts";
import { toError } from "../../../../core/errors.ts";
import { Waiters } from "../../../../core/waiters.ts";

export interface Kept<T> {
  readonly value: T;
  /** Resolves with the reason when it has ended; with an empty text when there is nothing to report. */
  readonly ended: Promise<string>;
  stop(): Promise<void>;
}

export interface KeeperOptions<T> {
  readonly clock: Clock;
  /** Starts it, and resolves when it is usable. Must stop when the signal aborts. */
  begin(signal: AbortSignal): Promise<Kept<T>>;
  up?(value: T): void;
  /** Called when it is not usable any more or could not be started. Gets the reason, and the pause before the next start. */
  down?(why: string, againMs: number): void;
}

const restartPolicy: Backoff = { kind: "exponential", delayMs: 200, maxMs: 30_000, jitter: 0.1 };
/** When it was up for this long, the backoff begins again with its shortest pause. */
const calmMs = 60_000;

export class Keeper<T> {
  readonly #options: KeeperOptions<T>;
  readonly #stopped = new AbortController();
  #current: (Kept<T> & { readonly sinceMs: number }) | null = null;
  #replaced: string | null = null;
  readonly #changed = new Waiters();
  #running: Promise<void> | null = null;

  constructor(options: KeeperOptions<T>) {
    this.#options = options;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** The current value; null while nothing is up. */
  get value(): T | null {
    return this.#current?.value ?? null;
  }

  /** Resolves when it is up; with null when the signal aborts first or it is stopped. */
  async ready(signal: AbortSignal): Promise<T | null> {
    while (this.#current === null) {
      if (signal.aborted || this.#stopped.signal.aborted) return null;
      await this.#changed.wait(signal);
    }
    return this.#current.value;
  }

  /** Ends `value` and starts again, unless that has happened already. For a caller that found `value` unusable. */
  async replace(value: T, why: string): Promise<void> {
    const current = this.#current;
    if (current === null || current.value !== value) return;
    this.#replaced = why;
    await current.stop();
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#current?.stop();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock } = this.#options;
    const { signal } = this.#stopped;
    for (let failures = 0; !signal.aborted; ) {
      const { why, upMs } = await this.#once();
      if (signal.aborted) break;
      failures = upMs >= calmMs ? 1 : failures + 1;
      const againMs = backoffMs(restartPolicy, failures, Math.random());
      this.#options.down?.(why, againMs);
      await pause(clock, againMs, signal);
    }
    this.#changed.wake();
  }

  /** Runs it once. Resolves when it has ended, with the time that it was up. */
  async #once(): Promise<{ why: string; upMs: number }> {
    const { clock, begin, up } = this.#options;
    try {
      const kept = await begin(this.#stopped.signal);
      if (this.#stopped.signal.aborted) {
        await kept.stop();
        return { why: "it was stopped", upMs: 0 };
      }
      const sinceMs = clock.now();
      this.#current = { ...kept, sinceMs };
      up?.(kept.value);
      this.#changed.wake();
      const ended = await kept.ended;
      // The end of the process may explain why it was unusable.
      const why = [this.#replaced ?? "", ended].filter((text) => text !== "").join("; ");
      return { why, upMs: clock.now() - sinceMs };
    } catch (error) {
      return { why: toError(error).message, upMs: 0 };
    } finally {
      this.#current = null;
      this.#replaced = null;
    }
  }
}
