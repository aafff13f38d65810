// How much work the connections of a server may cause in one turn of the event loop. What arrives together is read together: one connection can
// bring tens of thousands of small requests in one turn, and all other callers would wait for them. So work is counted in units where it
// begins. A connection that has used its share stops reading and continues in a later turn, after the others had theirs. Nothing is refused.
//
// A client that waits for its answers never gets near its share, and pays for a few additions.

/** One request, or one call of gRPC. The others are in proportion: a request takes about 25 us, a piece of a body 1.5 us. */
export const requestUnits = 16;
/** One piece of a body or message. */
export const pieceUnits = 1;

/** Of one connection in one turn: 64 requests, or 1,024 pieces. About two milliseconds. */
const shareUnits = 1_024;
/** Of all connections together in one turn; four that flood the server have their whole share. */
const turnUnits = 4_096;
/** What each connection has in every turn whatever the others do: the requests that it has places of its own for. */
const ownUnits = 4 * requestUnits;

/** One for all connections of a server. */
export class LoopTurns {
  #left = turnUnits;
  #touched: Share[] = [];
  #waiting: Share[] = [];
  #armed = false;
  /** Differs between turns in which something was counted. */
  number = 0;

  /** A share for one connection. `resume` is called in a later turn, once for each `wait`. */
  share(resume: () => void): Share {
    return new Share(this, resume);
  }

  /** True when all connections together have used up this turn. */
  get full(): boolean {
    return this.#left <= 0;
  }

  /** Shares that wait for a later turn. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** For shares: work was done in this turn, by this one for the first time if `first`. */
  spend(share: Share, units: number, first: boolean): void {
    this.#left -= units;
    if (!first) return;
    this.#touched.push(share);
    this.#arm();
  }

  /** For shares: continue this one when it is its turn. */
  enqueue(share: Share): void {
    this.#waiting.push(share);
    this.#arm();
  }

  #arm(): void {
    if (this.#armed) return;
    this.#armed = true;
    setImmediate(this.#next);
  }

  readonly #next = (): void => {
    this.#armed = false;
    this.number++;
    this.#left = turnUnits;
    for (const share of this.#touched) share.renew();
    this.#touched = [];
    const queue = this.#waiting;
    this.#waiting = [];
    let at = 0;
    while (at < queue.length && !this.full) queue[at++]?.continue();
    // Those whose turn has not come stay before those that wait again.
    if (at < queue.length) this.#waiting = [...queue.slice(at), ...this.#waiting];
    if (this.#waiting.length > 0) this.#arm();
  };
}

/** What one connection may do in a turn. */
export class Share {
  readonly #turns: LoopTurns;
  readonly #resume: () => void;
  #spent = 0;
  #waits = false;

  constructor(turns: LoopTurns, resume: () => void) {
    this.#turns = turns;
    this.#resume = resume;
  }

  /** Counts work that begins now. */
  spend(units: number): void {
    this.#turns.spend(this, units, this.#spent === 0);
    this.#spent += units;
  }

  /** True when the rest has to wait for a later turn. */
  get used(): boolean {
    return this.#spent >= shareUnits || (this.#spent >= ownUnits && this.#turns.full);
  }

  /** Has `resume` called in a later turn. Again, before that, is harmless. */
  wait(): void {
    if (this.#waits) return;
    this.#waits = true;
    this.#turns.enqueue(this);
  }

  /** For LoopTurns: a new turn. */
  renew(): void {
    this.#spent = 0;
  }

  /** For LoopTurns: its turn has come. */
  continue(): void {
    this.#waits = false;
    this.#resume();
  }
}
