// Estimates the time of the server without a request and independently of the worker's clock. The estimate is never ahead of the server.

/** Milliseconds of a clock that only goes forward. */
export type Steady = () => number;

export class ServerTime {
  readonly #steady: Steady;
  #known: number;
  #at: number;

  constructor(known: number, steady: Steady = () => performance.now()) {
    this.#steady = steady;
    this.#known = known;
    this.#at = steady();
  }

  get now(): number {
    return this.#known + Math.floor(this.#steady() - this.#at);
  }

  /** The server has sent this time. */
  learn(time: number | undefined): void {
    if (time === undefined || time <= this.now) return;
    this.#known = time;
    this.#at = this.#steady();
  }
}
