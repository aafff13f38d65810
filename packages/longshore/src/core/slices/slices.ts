// What is read in one turn of the event loop is bounded, for all requests together. A reader of many rows takes them in slices and takes a
// place in a turn before each:
//
//   for (;;) {
//     await slices.turn(500);
//     const rows = next500Rows();
//     ...
//   }
//
// While there is room, that costs nothing. Then slices wait in a queue, some in each turn, and between two turns every other request is
// served. A slice is counted in rows and not in time, so that a test can check the bound whatever machine it runs on.

/** Rows that may be read in one turn: entries of an index or of a map at about 2 us, and some milliseconds together. */
export const turnRows = 2_000;
/** What a whole row of a task or a run counts, which is read and taken apart. */
export const wholeRow = 4;
/** Bytes of text that count as one more row: about as long as it takes to look through them. */
export const rowBytes = 1_024;

interface Waiting {
  readonly rows: number;
  readonly begin: () => void;
}

export class Slices {
  /** Rows of the fullest turn so far, and of all turns together. */
  longest = 0;
  total = 0;
  #rows = 0;
  #turning = false;
  readonly #line: Waiting[] = [];

  /** Resolves when so many rows may be read: at once where this turn has room for them. More than a turn has get one of their own. */
  turn(rows: number): Promise<void> {
    if (this.#line.length === 0 && this.#fits(rows)) {
      this.#count(rows);
      return ready;
    }
    return new Promise((begin) => this.#line.push({ rows, begin }));
  }

  /** Counts what was found to be longer than a row is: the next slice waits for it. */
  spent(bytes: number): void {
    if (bytes >= rowBytes) this.#count(Math.floor(bytes / rowBytes));
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
