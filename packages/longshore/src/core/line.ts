// A queue of jobs, each of which needs much memory while it runs. Only some of them run at the same time.

/** Runs at most `max` jobs at once. The others wait in order and hold nothing in memory. */
export class Line {
  readonly #max: number;
  #working = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  async use<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#working < this.#max) this.#working++;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#working--;
      else next();
    }
  }
}
