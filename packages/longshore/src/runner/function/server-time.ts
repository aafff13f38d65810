// The time of the server as a worker knows it, without a request and whatever the clock of the worker shows: never ahead of the server.

export class ServerTime {
  #known: number;
  #at = performance.now();

  constructor(known: number) {
    this.#known = known;
  }

  get now(): number {
    return this.#known + Math.floor(performance.now() - this.#at);
  }

  /** The server has named this time. */
  learn(time: number | undefined): void {
    if (time === undefined || time <= this.now) return;
    this.#known = time;
    this.#at = performance.now();
  }
}
