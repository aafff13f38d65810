// Finding one text in another, in time that is linear in both, whatever they are. Callers choose what is searched for, and often also what is
// searched in: `includes` of V8 and LIKE of SQLite may compare a long text at every place of the other, which takes seconds for a megabyte.

import type { Sliced } from "./slices/slice-work.ts";

/** V8 searches for a text of up to so many characters in linear time, and much faster than we can. */
const linearCharsMax = 250;
/** Characters that are looked through in one slice: some milliseconds. */
const pieceChars = 1_048_576;

/** Whether `wanted` is in `text`. */
export function hasText(text: string, wanted: string): boolean {
  return wanted.length <= linearCharsMax ? text.includes(wanted) : new TextSearch(wanted).isIn(text);
}

/** The same, whether letters are large or small. */
export function* hasTextInSlices(text: string, wanted: string): Sliced<boolean> {
  const small = wanted.toLowerCase();
  const search = small.length <= linearCharsMax ? undefined : new TextSearch(small);
  for (let at = 0; at === 0 || at < text.length; at += pieceChars) {
    if (at > 0) yield;
    // A match that begins in this piece may end in the next.
    const piece = text.slice(at, at + pieceChars + small.length).toLowerCase();
    if (search === undefined ? piece.includes(small) : search.isIn(piece)) return true;
  }
  return false;
}

/** By Knuth, Morris and Pratt: after a mismatch it continues where it is, with as much of the wanted text as fits there. */
export class TextSearch {
  /** Comparisons so far. */
  compared = 0;
  readonly #wanted: string;
  /** For each length of a head of the wanted text, the length of the longest shorter head that it ends with. */
  readonly #shorter: Int32Array;

  constructor(wanted: string) {
    this.#wanted = wanted;
    this.#shorter = new Int32Array(wanted.length + 1);
    let matched = 0;
    for (let at = 1; at < wanted.length; at++) {
      matched = this.#after(matched, wanted.charCodeAt(at));
      this.#shorter[at + 1] = matched;
    }
  }

  isIn(text: string): boolean {
    const { length } = this.#wanted;
    let matched = 0;
    for (let at = 0; at < text.length && matched < length; at++) matched = this.#after(matched, text.charCodeAt(at));
    return matched === length;
  }

  /** How much of the wanted text is matched after one more character. */
  #after(before: number, character: number): number {
    let matched = before;
    for (;;) {
      this.compared++;
      if (this.#wanted.charCodeAt(matched) === character) return matched + 1;
      if (matched === 0) return 0;
      matched = this.#shorter[matched] as number;
    }
  }
}
