// How many tasks may be with a worker unclaimed, adapted to how soon it claims. An offer and a claim are a commit each: with one task at
// a time they follow each other, and a worker of many slots is kept waiting: 286 and 130 runs a second were measured at 10 and 100 callers,
// and 730 and 1,104 with up to eight ahead. So one that claims at once is sent some ahead; one whose claims take their time is sent fewer,
// and one that leaves a task unclaimed, one.

/** With more, commits are hardly fuller, and more would wait with a worker that has just become busy. */
const mostMax = 16;
/** So many claims in a row that came at once let one more be sent ahead: a worker with little to do has one at a time. */
const promptClaims = 4;
/** A worker with room claims within the time of a call and a commit; even across continents. */
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
