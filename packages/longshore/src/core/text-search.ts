// Finds one text in another, in time linear in both. Callers choose the text to search for, and often also the text to search in: V8's
// `includes` and SQLite's LIKE may compare a long text at every position of the other, which takes seconds for a megabyte.

import type { Sliced } from "./slices/slice-work.ts";

/** For texts up to this length, V8 searches in linear time and is much faster than this code. */
const linearCharsMax = 250;
/** The characters that are searched in one slice: some milliseconds. */
const pieceChars = 1_048_576;

export function hasText(text: string, wanted: string): boolean {
  return wanted.length <= linearCharsMax ? text.includes(wanted) : new TextSearch(wanted).isIn(text);
}

/** The same, ignoring upper and lower case. */
export function* hasTextInSlices(text: string, wanted: string): Sliced<boolean> {
  const small = wanted.toLowerCase();
  const search = small.length <= linearCharsMax ? undefined : new TextSearch(small);
  for (let at = 0; at === 0 || at < text.length; at += pieceChars) {
    if (at > 0) yield;
    // A match that begins in this piece may end in the next one.
    const piece = text.slice(at, at + pieceChars + small.length).toLowerCase();
    if (search === undefined ? piece.includes(small) : search.isIn(piece)) return true;
  }
  return false;
}

/**
 * Knuth-Morris-Pratt: after a mismatch the search continues at the same position, with the longest prefix of the wanted text that still
 * matches.
 */
export class TextSearch {
  /** The number of comparisons so far. */
  compared = 0;
  readonly #wanted: string;
  /** For each prefix of the wanted text, the length of the longest shorter prefix that it ends with. */
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

  /** The number of matched characters after one more character. */
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
