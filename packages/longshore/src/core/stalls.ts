// Ends connections and transfers that make no progress for a while, or too little on average. So no caller occupies memory or a slot while
// it does almost nothing. One timer checks all of them, and runs only while there are any.

import type { Clock } from "./clock.ts";

export interface Moving {
  /** A number that changes with every progress. NaN counts as progress: the peer is not to blame while it waits for this server. */
  progress(): number;
  /** Called once, when there was no progress for too long, or too little. The watch of this entry is then over. */
  stalled(): void;
}

/** The number of checks within the allowed time. A stall is noticed late, by at most the time between two checks. */
const looksEach = 4;

export class Stalls {
  readonly #clock: Clock;
  readonly #ms: number;
  /** The progress that each check requires. */
  readonly #perLook: number;
  readonly #watched = new Map<Moving, Seen>();
  #cancel: (() => void) | undefined;

  /** Ends what has made no progress for `ms`. After that time also ends what has less than `perSecond` on average since it was added. */
  constructor(clock: Clock, ms: number, perSecond = 0) {
    this.#clock = clock;
    this.#ms = ms;
    this.#perLook = (perSecond * ms) / looksEach / 1_000;
  }

  get size(): number {
    return this.#watched.size;
  }

  watch(moving: Moving): void {
    const progress = moving.progress();
    this.#watched.set(moving, { progress, from: progress || 0, looks: 0, quiet: 0 });
    this.#cancel ??= this.#arm();
  }

  /**
   * Calling this again has no effect. The timer stays until it finds nothing: starting and stopping it for each request would cost more.
   */
  unwatch(moving: Moving): void {
    this.#watched.delete(moving);
  }

  /** Stops watching everything. */
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
      seen.quiet = progress === seen.progress ? seen.quiet + 1 : 0;
      seen.progress = progress;
      if (!Number.isNaN(progress)) seen.looks++;
      // The first check may come right after the beginning. So the average is judged one check later.
      const slow = seen.looks > looksEach && progress - seen.from < (seen.looks - 1) * this.#perLook;
      if (seen.quiet <= looksEach && !slow) continue;
      this.#watched.delete(moving);
      moving.stalled();
    }
    this.#cancel = this.#watched.size === 0 ? undefined : this.#arm();
  }
}

interface Seen {
  progress: number;
  readonly from: number;
  /** The number of checks, without those in which the peer waited for this server. */
  looks: number;
  /** The number of the last checks in a row without progress. */
  quiet: number;
}
