// What must go on: whatever makes no progress for a while, or too little on average, is ended, so that no caller holds memory or a place by doing
// next to nothing. One timer looks after all of them, and only while there are any.

import type { Clock } from "./clock.ts";

export interface Moving {
  /** A number that changes whenever something has moved. NaN counts as moved: what waits for us is not to blame. */
  progress(): number;
  /** Called once, when nothing has moved for too long, or too little. It is not watched any more then. */
  stalled(): void;
}

/** How often in the allowed time it is looked at: an end is late by at most this part of it. */
const looksEach = 4;

export class Stalls {
  readonly #clock: Clock;
  readonly #ms: number;
  /** How much must have moved for each look. */
  readonly #perLook: number;
  readonly #watched = new Map<Moving, Seen>();
  #cancel: (() => void) | undefined;

  /** Ends what has not moved for `ms`, and after that time also what has moved by less than `perSecond` on average since it is watched. */
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
      seen.quiet = progress === seen.progress ? seen.quiet + 1 : 0;
      seen.progress = progress;
      if (!Number.isNaN(progress)) seen.looks++;
      // The first look comes at any time after the beginning, so that one more is needed than the time has.
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
  /** How many looks there were, without those that found it waiting for us. */
  looks: number;
  /** In how many of the last looks nothing had moved. */
  quiet: number;
}
