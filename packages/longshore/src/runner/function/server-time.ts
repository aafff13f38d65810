// Estimates the time of the server without a request and independently of the worker's clock. The estimate is never ahead of the server.

export class ServerTime {
  #known: number;
  #at = performance.now();

  constructor(known: number) {
    this.#known = known;
  }

  get now(): number {
    return this.#known + Math.floor(performance.now() - this.#at);
  }

  /** The server has sent this time. */
  learn(time: number | undefined): void {
    if (time === undefined || time <= this.now) return;
    this.#known = time;
    this.#at = performance.now();
  }
}
