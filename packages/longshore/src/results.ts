// Callers that wait for something to end, by its id.

export class Results<T> {
  readonly #waiting = new Map<string, ((ended: T) => void)[]>();

  /**
   * Resolves once `id` has ended; with undefined when there is no such thing. `look` is asked after this caller stands in line, so an end
   * that comes in between is not missed.
   */
  async of(id: string, look: () => Promise<T | undefined>, isOpen: (found: T) => boolean): Promise<T | undefined> {
    const { ended, leave } = this.expect(id);
    let found: T | undefined;
    try {
      found = await look();
    } catch (error) {
      leave();
      throw error;
    }
    if (found !== undefined && isOpen(found)) return ended;
    leave();
    return found;
  }

  tell(id: string, ended: T): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    for (const resolve of waiting) resolve(ended);
  }

  get size(): number {
    return this.#waiting.size;
  }

  /** Stands in line for something that is about to exist. */
  expect(id: string): { ended: Promise<T>; leave: () => void } {
    let resolve: (ended: T) => void = () => {};
    const ended = new Promise<T>((settle) => {
      resolve = settle;
    });
    const others = this.#waiting.get(id);
    if (others === undefined) this.#waiting.set(id, [resolve]);
    else others.push(resolve);
    const leave = () => {
      const rest = this.#waiting.get(id)?.filter((other) => other !== resolve) ?? [];
      if (rest.length === 0) this.#waiting.delete(id);
      else this.#waiting.set(id, rest);
    };
    return { ended, leave };
  }
}
