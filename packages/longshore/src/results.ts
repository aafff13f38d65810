// Callers that wait for something to end, by its id.

interface Waiting<T> {
  resolve(ended: T): void;
  reject(error: Error): void;
}

export class Results<T> {
  readonly #waiting = new Map<string, Waiting<T>[]>();

  /**
   * Resolves once `id` has ended; with undefined when there is no such thing. `look` is asked after this caller stands in line, so an end
   * that comes in between is not missed. When `signal` aborts the caller leaves the line, with what it sees then.
   */
  async of(id: string, look: () => Promise<T | undefined>, isOpen: (found: T) => boolean, signal?: AbortSignal): Promise<T | undefined> {
    const { ended, leave } = this.expect(id);
    let found: T | undefined;
    try {
      found = await look();
    } catch (error) {
      leave();
      throw error;
    }
    if (found === undefined || !isOpen(found)) {
      leave();
      return found;
    }
    if (signal === undefined || (await endsBefore(signal, ended))) return ended;
    leave();
    return look();
  }

  tell(id: string, ended: T): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    for (const { resolve } of waiting) resolve(ended);
  }

  /** Nothing will end any more: whoever waits is told why. */
  close(error: Error): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of all) for (const { reject } of waiting) reject(error);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Stands in line for something that is about to exist. */
  expect(id: string): { ended: Promise<T>; leave: () => void } {
    const waiting: Waiting<T> = { resolve() {}, reject() {} };
    const ended = new Promise<T>((resolve, reject) => {
      waiting.resolve = resolve;
      waiting.reject = reject;
    });
    const others = this.#waiting.get(id);
    if (others === undefined) this.#waiting.set(id, [waiting]);
    else others.push(waiting);
    const leave = () => {
      const rest = this.#waiting.get(id)?.filter((other) => other !== waiting) ?? [];
      if (rest.length === 0) this.#waiting.delete(id);
      else this.#waiting.set(id, rest);
    };
    return { ended, leave };
  }
}

/** False when the signal came first. A wait that was rejected counts as over. */
async function endsBefore(signal: AbortSignal, ended: Promise<unknown>): Promise<boolean> {
  if (signal.aborted) return false;
  let stop = () => {};
  const stopped = new Promise<boolean>((resolve) => {
    stop = () => resolve(false);
  });
  signal.addEventListener("abort", stop, { once: true });
  const over = ended.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([over, stopped]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
