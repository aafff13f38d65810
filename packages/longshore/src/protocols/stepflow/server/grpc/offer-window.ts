// How many unclaimed tasks a worker may have, adapted to how fast it claims. An offer and a claim are one commit each, and with one task at
// a time these follow each other. Measured at 10 and at 100 callers: 286 and 130 runs a second with one task at a time, and 730 and 1,104
// with up to eight unclaimed tasks. So a worker that claims at once gets several unclaimed tasks. One that claims slowly gets fewer. One
// that leaves a task unclaimed gets one task at a time.

/** The largest window. A larger one would hardly make commits larger, and more tasks would wait at a worker that has just become busy. */
const mostMax = 16;
/** After this many prompt claims in a row the window grows by one. A worker with little work keeps a small window. */
const promptClaims = 4;
/** A worker with a free slot claims within the time of a call and a commit, even across continents. */
const promptMs = 250;

export class OfferWindow {
  #most = 1;
  #prompt = 0;

  get most(): number {
    return this.#most;
  }

  claimedAfter(ms: number): void {
    if (ms > promptMs) {
      this.#most = Math.ceil(this.#most / 2);
      this.#prompt = 0;
    } else if (++this.#prompt % promptClaims === 0) this.#most = Math.min(this.#most + 1, mostMax);
  }

  lapsed(): void {
    this.#most = 1;
    this.#prompt = 0;
  }
}
