// The worker's slots. A transport takes a slot before it receives anything and keeps it until the report is settled. So a worker never
// holds more work than it can run. A released slot goes to the first transport that waits.

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

  /** True when a transport other than `owner` waits for a slot: then the owner must not keep a slot for more work. */
  wantedByOthers(owner: unknown): boolean {
    return this.#waiting.some((waiter) => waiter.owner !== owner);
  }

  /** Resolves with true when it has taken a slot; with false when the pool was closed or the signal aborted first. */
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

  /** Ends all waits for a slot; slots that are taken can still be released. */
  close(): void {
    this.#closed = true;
    for (const waiter of this.#waiting.splice(0)) waiter.settle(false);
  }

  /** Takes up to `max` free slots without waiting and returns their number. */
  takeFree(max: number): number {
    const taken = Math.max(0, Math.min(this.#free, max));
    this.#free -= taken;
    return taken;
  }

  /** Releases one slot. */
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
