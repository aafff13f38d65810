// How old things are to retention. Time in which no server ran counts up to a day; what is beyond it is caught up with at twice the speed
// while the server runs. So a machine that starts with a clock weeks ahead removes nothing that its operator would miss before anyone
// has seen the clock.

/** What is kept of it in the data file. */
export interface AgeMark {
  /** When it was written. */
  readonly seenAt: number;
  /** How far ages are behind the clock. */
  readonly lagMs: number;
}

/** Longer than a restart, an upgrade or a night takes. */
const absenceMsMax = 86_400_000;

export class Age {
  #seenAt: number;
  #lagMs: number;

  constructor(mark: AgeMark | null, now: number) {
    const absenceMs = mark === null ? 0 : now - mark.seenAt;
    // A clock that was ahead and is right again takes back what it was ahead.
    this.#lagMs = mark === null ? 0 : Math.max(0, mark.lagMs + (absenceMs < 0 ? absenceMs : Math.max(0, absenceMs - absenceMsMax)));
    this.#seenAt = now;
  }

  /** The time against which ends are compared. To be called again and again while the server runs. */
  at(now: number): number {
    this.#lagMs = Math.max(0, this.#lagMs - Math.max(0, now - this.#seenAt));
    this.#seenAt = now;
    return now - this.#lagMs;
  }

  get mark(): AgeMark {
    return { seenAt: this.#seenAt, lagMs: this.#lagMs };
  }
}
