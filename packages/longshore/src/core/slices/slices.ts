// Bounds the rows that all requests together read in one turn of the event loop. A reader of many rows reads them in slices and waits for a
// turn before each:
//
//   for (;;) {
//     await slices.turn(500);
//     const rows = next500Rows();
//     ...
//   }
//
// While the turn has room, this costs nothing. Otherwise slices wait in a queue, some run in each turn, and other requests are served
// between two turns. A slice is counted in rows and not in time, so that a test can check the bound on any machine.

/** The rows that may be read in one turn. An entry of an index or of a map takes about 2 us, so a turn takes some milliseconds. */
export const turnRows = 2_000;
/** The weight of a whole row of a task or a run, which is read and decoded. */
export const wholeRow = 4;
/** The same for one that is read with its texts, to be written into a response. */
export const wholeRead = 8;
/** The bytes of text that count as one more row: scanning them takes about as long. */
export const rowBytes = 1_024;

interface Waiting {
  readonly rows: number;
  readonly begin: () => void;
}

export class Slices {
  /** The rows of the fullest turn so far, and of all turns together. */
  longest = 0;
  total = 0;
  #rows = 0;
  #turning = false;
  readonly #line: Waiting[] = [];

  /**
   * Resolves when this many rows may be read: at once when this turn has room for them. A request for more rows than a turn allows gets a
   * turn of its own.
   */
  turn(rows: number): Promise<void> {
    if (this.#line.length === 0 && this.#fits(rows)) {
      this.#count(rows);
      return ready;
    }
    return new Promise((begin) => this.#line.push({ rows, begin }));
  }

  /** Counts text that was longer than a row: the next slice waits accordingly. */
  spent(bytes: number): void {
    if (bytes >= rowBytes) this.#count(Math.floor(bytes / rowBytes));
  }

  /** True when text has used up this turn. Then a slice that got this turn, and has not begun yet, asks for another turn. */
  get isOver(): boolean {
    return this.#rows > turnRows;
  }

  #fits(rows: number): boolean {
    return this.#rows === 0 || this.#rows + rows <= turnRows;
  }

  #count(rows: number): void {
    this.#rows += rows;
    this.total += rows;
    if (this.#rows > this.longest) this.longest = this.#rows;
    if (this.#turning) return;
    this.#turning = true;
    setImmediate(() => this.#next());
  }

  #next(): void {
    this.#turning = false;
    this.#rows = 0;
    for (let first = this.#line[0]; first !== undefined && this.#fits(first.rows); first = this.#line[0]) {
      this.#line.shift();
      this.#count(first.rows);
      first.begin();
    }
  }
}

const ready = Promise.resolve();
