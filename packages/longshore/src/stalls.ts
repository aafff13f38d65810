// What must go on: whatever makes no progress for a while is ended, so that nobody holds memory or a place by doing nothing. One timer looks
// after all of them, and only while there are any.

import type { Clock } from "./clock.ts";

export interface Moving {
  /** A number that changes whenever something has moved. NaN counts as moved: what waits for us is not to blame. */
  progress(): number;
  /** Called once, when nothing has moved for too long. It is not watched any more then. */
  stalled(): void;
}

/** How often in the time that is allowed somebody looks: an end is late by at most this part of it. */
const looksEach = 4;

export class Stalls {
  readonly #clock: Clock;
  readonly #ms: number;
  readonly #watched = new Map<Moving, Seen>();
  #cancel: (() => void) | undefined;

  /** Ends what has not moved for `ms`. */
  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#ms = ms;
  }

  get size(): number {
    return this.#watched.size;
  }

  watch(moving: Moving): void {
    this.#watched.set(moving, { progress: moving.progress(), looks: 0 });
    this.#cancel ??= this.#arm();
  }

  /** Again is harmless. The timer stays until it finds nothing: starting and stopping it for each request would cost more. */
  unwatch(moving: Moving): void {
    this.#watched.delete(moving);
  }

  /** Watches nothing any more. */
  stop(): void {
    this.#watched.clear();
    this.#cancel?.();
    this.#cancel = undefined;
  }

  #arm(): () => void {
    return this.#clock.at(this.#clock.now() + this.#ms / looksEach, () => this.#look());
  }

  #look(): void {
    for (const [moving, seen] of [...this.#watched]) {
      const progress = moving.progress();
      if (progress !== seen.progress) {
        seen.progress = progress;
        seen.looks = 0;
        // The first look comes at any time after the beginning, so that one more is needed than the time has.
      } else if (++seen.looks > looksEach) {
        this.#watched.delete(moving);
        moving.stalled();
      }
    }
    this.#cancel = this.#watched.size === 0 ? undefined : this.#arm();
  }
}

interface Seen {
  progress: number;
  /** In how many looks nothing had moved. */
  looks: number;
}
