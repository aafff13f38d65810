// Memory that many callers share: who needs some takes it first, and is refused when all of it is taken. What is held is known at any time.

export class ByteBudget {
  readonly max: number;
  #held = 0;

  constructor(max: number) {
    this.max = max;
  }

  get held(): number {
    return this.#held;
  }

  /** False, with nothing taken, when there is no room for `bytes`. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.max) return false;
    this.#held += bytes;
    return true;
  }

  /** For what is in memory already, whether there was room for it or not. */
  takeAnyway(bytes: number): void {
    this.#held += bytes;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}
