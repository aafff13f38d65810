// The worker's slots. A slot is taken before anything is received and kept until the report is settled, so a worker never holds more
// work than it can run. Waiting transports are served in the order they came; a freed slot goes to the first of them, or is free.

export class SlotPool {
  readonly total: number;
  #free: number;
  #waiting: Waiter[] = [];

  constructor(total: number) {
    this.total = total;
    this.#free = total;
  }

  get free(): number {
    return this.#free;
  }

  /** True when somebody else than `owner` waits for a slot: a slot must then not be kept for more work of the same owner. */
  wantedByOthers(owner: unknown): boolean {
    return this.#waiting.some((waiter) => waiter.owner !== owner);
  }

  /** Resolves to true with a slot taken, or to false when `signal` aborted first. */
  take(owner: unknown, signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return Promise.resolve(false);
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const waiter: Waiter = {
        owner,
        give: () => {
          signal.removeEventListener("abort", leave);
          resolve(true);
        },
      };
      const leave = () => {
        this.#waiting = this.#waiting.filter((other) => other !== waiter);
        resolve(false);
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(waiter);
    });
  }

  /** Takes up to `max` free slots without waiting and answers how many. */
  takeFree(max: number): number {
    const taken = Math.max(0, Math.min(this.#free, max));
    this.#free -= taken;
    return taken;
  }

  /** Gives one slot back. */
  release(): void {
    const next = this.#waiting.shift();
    if (next !== undefined) next.give();
    else this.#free++;
  }
}

interface Waiter {
  readonly owner: unknown;
  readonly give: () => void;
}
