// The age of data for retention. Time in which no server ran counts up to a day. The rest is caught up at twice the speed while the server
// runs. So an operator has time to notice a clock that is weeks ahead before anything is removed.

/** The state of the age in the data file. */
export interface AgeMark {
  /** When the mark was written. */
  readonly seenAt: number;
  /** How far ages are behind the clock. */
  readonly lagMs: number;
}

/** Time without a server that counts fully: a restart, an upgrade or a night takes less. */
const absenceMsMax = 86_400_000;

export class Age {
  #seenAt: number;
  #lagMs: number;

  constructor(mark: AgeMark | null, now: number) {
    const absenceMs = mark === null ? 0 : now - mark.seenAt;
    // A clock that was ahead and is now correct reduces the lag by the same time.
    this.#lagMs = mark === null ? 0 : Math.max(0, mark.lagMs + (absenceMs < 0 ? absenceMs : Math.max(0, absenceMs - absenceMsMax)));
    this.#seenAt = now;
  }

  /** Returns the time with which ends are compared. Must be called regularly while the server runs. */
  at(now: number): number {
    this.#lagMs = Math.max(0, this.#lagMs - Math.max(0, now - this.#seenAt));
    this.#seenAt = now;
    return now - this.#lagMs;
  }

  get mark(): AgeMark {
    return { seenAt: this.#seenAt, lagMs: this.#lagMs };
  }
}
