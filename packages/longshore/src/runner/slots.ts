// The worker's slots. A slot is taken before anything is received and kept until the report is settled, so a worker never holds more
// work than it can run. Waiting transports are served in the order they came; a freed slot is given to the first of them, or is free.

export class SlotPool {
  readonly total: number;
  #free: number;
  readonly #waiting: Waiter[] = [];
  #closed = false;

  constructor(total: number) {
    this.total = total;
    this.#free = total;
  }

  get free(): number {
    return this.#free;
  }

  /** True when another transport than `owner` waits for a slot: a slot must then not be kept for more work of the same owner. */
  wantedByOthers(owner: unknown): boolean {
    return this.#waiting.some((waiter) => waiter.owner !== owner);
  }

  /** Resolves to true with a slot taken, or to false when the pool was closed or the signal aborted first. */
  take(owner: unknown, signal?: AbortSignal): Promise<boolean> {
    if (this.#closed || signal?.aborted) return Promise.resolve(false);
    if (this.#free > 0) {
      this.#free--;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const settle = (taken: boolean) => {
        signal?.removeEventListener("abort", leave);
        resolve(taken);
      };
      const waiter = { owner, settle };
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        settle(false);
      };
      signal?.addEventListener("abort", leave, { once: true });
      this.#waiting.push(waiter);
    });
  }

  /** No transport may wait for a slot any more; those that are taken are given back as before. */
  close(): void {
    this.#closed = true;
    for (const waiter of this.#waiting.splice(0)) waiter.settle(false);
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
    if (next !== undefined) next.settle(true);
    else this.#free++;
  }
}

interface Waiter {
  readonly owner: unknown;
  readonly settle: (taken: boolean) => void;
}
