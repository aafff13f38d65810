// Matches regular expressions from untrusted authors in time linear in text and pattern. With Node's own regular expressions, one
// definition could stop the whole server by backtracking. So a pattern is compiled to a small state machine (pattern-parser.ts), whose
// possible states are followed in parallel. Backreferences and lookaround are not supported; a pattern that uses them is refused.

import { type Place, parsePattern } from "./pattern-parser.ts";

export { PatternError } from "./pattern-parser.ts";

export interface LinearPattern {
  /** The number of states. It is the cost of building the pattern, and the maximum cost of matching one character. */
  readonly places: number;
  /** Calls `spend` with the number of states visited, as the work is done. `spend` may throw to stop the match. */
  matches(text: string, spend: (work: number) => void): boolean;
}

export interface PatternOptions {
  readonly ignoreCase?: boolean;
  /** The dot also matches line ends. */
  readonly dotAll?: boolean;
  /** The pattern must match the whole text. Default: a part of the text is enough. */
  readonly whole?: boolean;
  /** The syntax is JavaScript's, as in JSON Schema. Default: Java's. They differ in unescaped braces and brackets. */
  readonly javascript?: boolean;
}

/** Throws a PatternError when the pattern is invalid or cannot be matched in linear time. */
export function linearPattern(source: string, options: PatternOptions = {}): LinearPattern {
  const places = parsePattern(source, options);
  const whole = options.whole ?? false;
  return { places: places.length, matches: (text, spend) => new Search(places, text).run(whole, spend) };
}

/** Work is reported in batches of this many states: a call for each character would cost more than the character. */
const lot = 1_024;

class Search {
  readonly #places: readonly Place[];
  readonly #text: string;
  /** The states that take a character at the current position, and the round in which each state was last reached. */
  #standing: number[] = [];
  readonly #seen: Int32Array;
  #round = 0;
  #found = false;
  #work = 0;

  constructor(places: readonly Place[], text: string) {
    this.#places = places;
    this.#text = text;
    this.#seen = new Int32Array(places.length).fill(-1);
  }

  run(whole: boolean, spend: (work: number) => void): boolean {
    const found = this.#run(whole, spend);
    spend(this.#work);
    return found;
  }

  #run(whole: boolean, spend: (work: number) => void): boolean {
    const text = this.#text;
    let before = -1;
    let now: number[] = [];
    for (let at = 0; ; ) {
      const code = at < text.length ? (text.codePointAt(at) as number) : -1;
      if (before === -1 || !whole) this.#enter(0, before, code);
      if (this.#found && (!whole || code === -1)) return true;
      if (code === -1 || (whole && this.#standing.length === 0)) return false;
      [now, this.#standing] = [this.#standing, now];
      this.#standing.length = 0;
      this.#work += now.length;
      if (this.#work > lot) {
        spend(this.#work);
        this.#work = 0;
      }
      at += code > 0xffff ? 2 : 1;
      const after = at < text.length ? (text.codePointAt(at) as number) : -1;
      this.#round++;
      this.#found = false;
      for (const index of now) {
        const place = this.#places[index] as Place & { kind: "char" };
        if (place.accepts(code)) this.#enter(place.next, code, after);
      }
      before = code;
    }
  }

  /** Enters every state that can be reached from here without taking a character. `before` and `after` are -1 at the ends of the text. */
  #enter(from: number, before: number, after: number): void {
    const open = [from];
    for (let index = open.pop(); index !== undefined; index = open.pop()) {
      this.#work++;
      if (this.#seen[index] === this.#round) continue;
      this.#seen[index] = this.#round;
      const place = this.#places[index] as Place;
      if (place.kind === "char") this.#standing.push(index);
      else if (place.kind === "fork") for (const way of place.ways) open.push(way);
      else if (place.kind === "end") this.#found = true;
      else if (place.holds(before, after)) open.push(place.next);
    }
  }
}
