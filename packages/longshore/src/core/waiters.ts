// Callers that wait for the next change of something, each until its own signal aborts.

export class Waiters {
  readonly #waiting = new Set<() => void>();

  /** Resolves at the next `wake`, or when the signal aborts. */
  wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        this.#waiting.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      this.#waiting.add(done);
      signal.addEventListener("abort", done, { once: true });
      if (signal.aborted) done();
    });
  }

  /** Wakes all current waiters. A waiter that waits again in the same turn is not woken twice. */
  wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}
