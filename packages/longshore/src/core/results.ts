// Callers that wait until something ends, by its id.

/**
 * Registers `leave`, which is called when the caller gives up, or at once if it has already. The returned function removes `leave` again.
 */
export type GiveUp = (leave: () => void) => () => void;

const givenUp = Symbol("given up");

interface Waiting<T> {
  resolve(ended: T | typeof givenUp): void;
  reject(error: Error): void;
}

interface Place<T> {
  readonly ended: Promise<T>;
  /** Rejects `ended`: it will not happen. */
  fail(error: Error): void;
}

export class Results<T> {
  readonly #waiting = new Map<string, Waiting<T>[]>();

  /**
   * Resolves once `id` has ended; with undefined when `id` does not exist. `look` is called after this caller is registered, so that an end
   * in between is not missed. A caller that gives up is removed and receives the current state.
   */
  async of(id: string, look: () => Promise<T | undefined>, isOpen: (found: T) => boolean, giveUp?: GiveUp): Promise<T | undefined> {
    const { ended, leave, waiting } = this.#stand(id);
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
    const stop = giveUp?.(() => {
      leave();
      waiting.resolve(givenUp);
    });
    try {
      const end = await ended;
      return end === givenUp ? await look() : end;
    } finally {
      stop?.();
    }
  }

  tell(id: string, ended: T): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    for (const { resolve } of waiting) resolve(ended);
  }

  /** Rejects all waiters with `error`: nothing will end any more. */
  close(error: Error): void {
    const all = [...this.#waiting.values()];
    this.#waiting.clear();
    for (const waiting of all) for (const { reject } of waiting) reject(error);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Waits for the end of something that does not exist yet. */
  expect(id: string): Place<T> {
    const { ended, leave, waiting } = this.#stand(id);
    const fail = (error: Error) => {
      leave();
      waiting.reject(error);
    };
    // No one gives up here.
    return { ended: ended as Promise<T>, fail };
  }

  #stand(id: string): { ended: Promise<T | typeof givenUp>; leave: () => void; waiting: Waiting<T> } {
    const waiting: Waiting<T> = { resolve() {}, reject() {} };
    const ended = new Promise<T | typeof givenUp>((resolve, reject) => {
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
    return { ended, leave, waiting };
  }
}

/** Gives up when the signal aborts. */
export function whenAborted(signal: AbortSignal): GiveUp {
  return (leave) => {
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
    return () => signal.removeEventListener("abort", leave);
  };
}
