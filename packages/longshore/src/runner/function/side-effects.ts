// The side effects of a durable function that run on its worker: functions that were given to `w.local()`.
//
// A side effect begins when the function waits. From then on, until the function receives its next result, only side effects run. So a
// command that is given in this time comes from one of them, and would never get its result.

import { commandInside } from "./function-end.ts";

export class SideEffects {
  /** True from the moment when the function receives a result until it waits. */
  #isAwake = false;
  #asked: (() => void)[] = [];
  /** The one whose function is being called. */
  #calling: string | null = null;
  readonly #running = new Map<Promise<void>, string>();

  get running(): number {
    return this.#running.size;
  }

  /** The function receives something. */
  wake(): void {
    this.#isAwake = true;
  }

  /**
   * Waits until the function waits, then begins the side effects that it has given, if `mayBegin`. Side effects that end at once have ended
   * before this resolves.
   */
  rest(mayBegin: () => boolean): Promise<void> {
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#isAwake = false;
        const asked = this.#asked.splice(0);
        if (asked.length === 0 || !mayBegin()) return resolve();
        for (const begin of asked) begin();
        setImmediate(resolve);
      }),
    );
  }

  /** `begin` is called as soon as the function waits. */
  ask(begin: () => void): void {
    this.#asked.push(begin);
  }

  begin<Result>(name: string, run: () => Promise<Result>, ended: (result: Result) => void): void {
    this.#calling = name;
    try {
      const running = run().then((result) => {
        this.#running.delete(running);
        ended(result);
      });
      this.#running.set(running, name);
    } finally {
      this.#calling = null;
    }
  }

  /** Resolves when one of those that run has ended. */
  next(): Promise<void> {
    return Promise.race(this.#running.keys());
  }

  /** Throws when a side effect gives a command. */
  refuseInside(text: string): void {
    if (this.#calling !== null) throw commandInside([this.#calling], text);
    if (!this.#isAwake && this.#running.size > 0) throw commandInside([...this.#running.values()], text);
  }
}
