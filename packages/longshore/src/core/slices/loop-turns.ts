// Limits the work that one connection causes in one turn of the event loop. A connection can send tens of thousands of small requests,
// which Node reads in one turn, while all other callers wait. So work is counted in units when it begins. A connection that has used its
// share stops reading and continues in a later turn. Nothing is refused.
//
// A client that waits for each response before its next request rarely reaches its share; counting its work costs a few additions.

/** The units of one request or one gRPC call. The other costs are in proportion: a request takes about 25 us, a piece of a body 1.5 us. */
export const requestUnits = 16;
/** The units of one piece of a body or message. */
export const pieceUnits = 1;

/** The limit of one connection per turn: 64 requests, or 1,024 pieces. They take about two milliseconds. */
export const shareUnits = 1_024;
/** The limit of all connections together per turn: the full shares of four connections. */
const turnUnits = 4_096;
/**
 * Each known connection gets at least this much in every turn, regardless of the others: four requests. Connections of unknown clients get
 * nothing of their own: there may be ten thousand of them.
 */
const ownUnits = 4 * requestUnits;

/** One for all connections of a server. */
export class LoopTurns {
  readonly #turnUnits: number;
  #left: number;
  #touched: Share[] = [];
  #waiting: Share[] = [];
  #armed = false;
  /** The number of the turn. It rises after each turn in which work was counted or a share waited. */
  number = 0;

  /** `unitsMax` is the limit of all connections together per turn. */
  constructor(unitsMax = turnUnits) {
    this.#turnUnits = unitsMax;
    this.#left = unitsMax;
  }

  /**
   * A share for one connection. `resume` is called in a later turn, once for each `wait`. `isKnown` returns whether the client of the
   * connection may be trusted to have a part of its own.
   */
  share(resume: () => void, isKnown: () => boolean = always): Share {
    return new Share(this, resume, isKnown);
  }

  /** True when all connections together have used up this turn. */
  get full(): boolean {
    return this.#left <= 0;
  }

  /** Shares that wait for a later turn. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** For shares: counts work of this turn. `first` is true for the first work of this share in the turn. */
  spend(share: Share, units: number, first: boolean): void {
    this.#left -= units;
    if (!first) return;
    this.#touched.push(share);
    this.#arm();
  }

  /** For shares: continues this share when its turn comes. */
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
    this.#left = this.#turnUnits;
    for (const share of this.#touched) share.renew();
    this.#touched = [];
    const queue = this.#waiting;
    this.#waiting = [];
    let at = 0;
    while (at < queue.length && !this.full) queue[at++]?.continue();
    // Shares that did not get their turn stay before shares that wait again.
    if (at < queue.length) this.#waiting = [...queue.slice(at), ...this.#waiting];
    if (this.#waiting.length > 0) this.#arm();
  };
}

const always = (): boolean => true;

/** The work that one connection may do in a turn. */
export class Share {
  readonly #turns: LoopTurns;
  readonly #resume: () => void;
  readonly #isKnown: () => boolean;
  #spent = 0;
  #waits = false;

  constructor(turns: LoopTurns, resume: () => void, isKnown: () => boolean) {
    this.#turns = turns;
    this.#resume = resume;
    this.#isKnown = isKnown;
  }

  /** Counts work that begins now. */
  spend(units: number): void {
    this.#turns.spend(this, units, this.#spent === 0);
    this.#spent += units;
  }

  /** True when the rest has to wait for a later turn. */
  get used(): boolean {
    return this.#spent >= shareUnits || (this.#turns.full && (this.#spent >= ownUnits || !this.#isKnown()));
  }

  /** Calls `resume` in a later turn. Calling this again before then has no effect. */
  wait(): void {
    if (this.#waits) return;
    this.#waits = true;
    this.#turns.enqueue(this);
  }

  /** For LoopTurns: starts a new turn. */
  renew(): void {
    this.#spent = 0;
  }

  /** For LoopTurns: continues this share. */
  continue(): void {
    this.#waits = false;
    this.#resume();
  }
}
