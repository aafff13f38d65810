// A memory budget that many callers share. A caller takes bytes before it uses them, and is refused when the budget is used up.

export class ByteBudget {
  readonly max: number;
  #held = 0;

  constructor(max: number) {
    this.max = max;
  }

  get held(): number {
    return this.#held;
  }

  /** Returns false and takes nothing when there is no room for `bytes`. */
  take(bytes: number): boolean {
    if (this.#held + bytes > this.max) return false;
    this.#held += bytes;
    return true;
  }

  /** Counts bytes that are already in memory. They may exceed the limit. */
  takeAnyway(bytes: number): void {
    this.#held += bytes;
  }

  give(bytes: number): void {
    this.#held -= bytes;
  }
}
