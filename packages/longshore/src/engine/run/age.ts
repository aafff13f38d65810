// The age of data for retention. Time in which no server ran counts up to a day; the rest is caught up at twice the speed while the server
// runs. So a machine that starts with a clock weeks ahead removes nothing important before its operator has noticed the clock.

/** The state of the age in the data file. */
export interface AgeMark {
  /** When the mark was written. */
  readonly seenAt: number;
  /** How far ages are behind the clock. */
  readonly lagMs: number;
}

/** Absence that counts fully: longer than a restart, an upgrade or a night takes. */
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
