// Regular expressions of `=~ /.../i`, matched in time linear to text and pattern. Node's own would let one definition stop the whole
// server by backtracking, so a pattern is turned into a little machine whose possible states are followed side by side. There are no
// backreferences and no lookaround; a pattern that uses them is refused. As in Jayway, a pattern must match the whole text.

import { PathError } from "./path-error.ts";

export interface Pattern {
  /** `spend` is told of the work as it is done, and may throw to end it. */
  matches(text: string, spend: (work: number) => void): boolean;
}

type Accepts = (char: string) => boolean;

/** One place of the machine: accepts a character, goes two ways, demands an edge of the text, or ends. */
type Place =
  | { kind: "char"; accepts: Accepts; next: number }
  | { kind: "fork"; ways: number[] }
  | { kind: "edge"; holds: (text: readonly string[], at: number) => boolean; next: number }
  | { kind: "end" };

/** Counted repeats copy what they repeat; this bounds the machine, and so the cost of each character. */
const placesMax = 2_000;
/** Copies made for repeats, of pieces that may be empty and so add no place. */
const copiesMax = 10_000;
/** Groups inside each other: the parser calls itself for each. */
const groupsDeepMax = 50;

export function compilePattern(source: string, flags: string): Pattern {
  for (const flag of flags) if (!"imsuxUd".includes(flag)) throw new PathError(`the flag ${flag} of /${source}/ is not known`);
  const parser = new PatternParser([...source], { ignoreCase: flags.includes("i"), dotAll: flags.includes("s") });
  const places = parser.machine();
  return { matches: (text, spend) => run(places, [...text], spend) };
}

function run(places: readonly Place[], text: readonly string[], spend: (work: number) => void): boolean {
  let now = reach(places, [0], text, 0);
  for (let at = 0; at < text.length && now.length > 0; at++) {
    spend(now.length);
    const next: number[] = [];
    for (const index of now) {
      const place = places[index] as Place;
      if (place.kind === "char" && place.accepts(text[at] as string)) next.push(place.next);
    }
    now = reach(places, next, text, at + 1);
  }
  return now.some((index) => places[index]?.kind === "end");
}

/** Every place that can be stood on without taking a character. */
function reach(places: readonly Place[], from: readonly number[], text: readonly string[], at: number): number[] {
  const seen = new Set(from);
  for (const index of seen) {
    const place = places[index] as Place;
    if (place.kind === "fork") for (const way of place.ways) seen.add(way);
    else if (place.kind === "edge" && place.holds(text, at)) seen.add(place.next);
  }
  return [...seen];
}

/** A piece of the machine under construction: given where to go on, adds its places and answers where it begins. */
type Piece = (next: number) => number;

interface Options {
  ignoreCase: boolean;
  dotAll: boolean;
}

class PatternParser {
  readonly #source: readonly string[];
  readonly #options: Options;
  readonly #places: Place[] = [];
  #at = 0;
  #deep = 0;
  #copies = 0;

  constructor(source: readonly string[], options: Options) {
    this.#source = source;
    this.#options = options;
  }

  /** Place 0 is where a match begins. */
  machine(): Place[] {
    const whole = this.#alternatives();
    if (this.#at < this.#source.length) throw this.#bad("an unmatched )");
    this.#add({ kind: "fork", ways: [] });
    const begin = whole(this.#add({ kind: "end" }));
    this.#places[0] = { kind: "fork", ways: [begin] };
    return this.#places;
  }

  #add(place: Place): number {
    if (this.#places.length >= placesMax) throw this.#bad("more repeats than can be followed");
    return this.#places.push(place) - 1;
  }

  #alternatives(): Piece {
    const ways = [this.#sequence()];
    while (this.#peek() === "|") {
      this.#at++;
      ways.push(this.#sequence());
    }
    if (ways.length === 1) return ways[0] as Piece;
    return (next) => this.#add({ kind: "fork", ways: ways.map((way) => way(next)) });
  }

  #sequence(): Piece {
    const pieces: Piece[] = [];
    for (let char = this.#peek(); char !== undefined && char !== "|" && char !== ")"; char = this.#peek()) pieces.push(this.#repeated());
    return (next) => pieces.reduceRight((after, piece) => piece(after), next);
  }

  #repeated(): Piece {
    let piece = this.#atom();
    for (let bounds = this.#bounds(); bounds !== null; bounds = this.#bounds()) {
      // Lazy or possessive: which of several matches is taken makes no difference to whether there is one.
      if (this.#peek() === "?" || this.#peek() === "+") this.#at++;
      piece = this.#repeat(piece, bounds.least, bounds.most);
    }
    return piece;
  }

  #repeat(piece: Piece, least: number, most: number | null): Piece {
    return (next) => {
      this.#copies += Math.max(least, most ?? 0);
      if (this.#copies > copiesMax) throw this.#bad("more repeats than can be followed");
      let begin = next;
      if (most === null) {
        const fork = { kind: "fork" as const, ways: [next] };
        begin = this.#add(fork);
        fork.ways.push(piece(begin));
      } else for (let count = least; count < most; count++) begin = this.#add({ kind: "fork", ways: [piece(begin), next] });
      for (let count = 0; count < least; count++) begin = piece(begin);
      return begin;
    };
  }

  #bounds(): { least: number; most: number | null } | null {
    const char = this.#peek();
    if (char === "*" || char === "+" || char === "?") {
      this.#at++;
      return { least: char === "+" ? 1 : 0, most: char === "?" ? 1 : null };
    }
    if (char !== "{") return null;
    const close = this.#source.indexOf("}", this.#at);
    const found = /^(\d{1,4})(?:(,)(\d{0,4}))?$/.exec(this.#source.slice(this.#at + 1, close === -1 ? this.#at + 1 : close).join(""));
    if (found === null) throw this.#bad("a { that is no repeat");
    this.#at = close + 1;
    const least = Number(found[1]);
    if (found[2] === undefined) return { least, most: least };
    return { least, most: found[3] === "" || found[3] === undefined ? null : Number(found[3]) };
  }

  #atom(): Piece {
    const char = this.#take();
    if (char === "(") return this.#group();
    if (char === "[") return this.#char(this.#set());
    if (char === ".") return this.#char((given) => this.#options.dotAll || given !== "\n");
    if (char === "^") return this.#edge((_text, at) => at === 0);
    if (char === "$") return this.#edge((text, at) => at === text.length);
    if (char === "\\") return this.#escaped();
    if (char === "*" || char === "+" || char === "?" || char === "{") throw this.#bad(`nothing before ${char}`);
    return this.#char(this.#same(char));
  }

  #group(): Piece {
    if (this.#peek() === "?") {
      if (this.#source[this.#at + 1] !== ":") throw this.#bad("a group of a kind that is not supported");
      this.#at += 2;
    }
    if (++this.#deep > groupsDeepMax) throw this.#bad("groups too deep inside each other");
    const inside = this.#alternatives();
    this.#deep--;
    if (this.#peek() !== ")") throw this.#bad("an unclosed (");
    this.#at++;
    return inside;
  }

  #escaped(): Piece {
    const char = this.#take();
    if (char === "b" || char === "B") return this.#edge((text, at) => (isWord(text[at - 1]) !== isWord(text[at])) === (char === "b"));
    return this.#char(this.#escape(char));
  }

  #escape(char: string): Accepts {
    const known = classes[char.toLowerCase()];
    if (known !== undefined && /[dwsDWS]/.test(char)) return char === char.toLowerCase() ? known : (given) => !known(given);
    if (/[1-9a-zA-Z]/.test(char) && controls[char] === undefined) throw this.#bad(`\\${char}, which is not supported`);
    return this.#same(controls[char] ?? char);
  }

  #set(): Accepts {
    const negated = this.#peek() === "^";
    if (negated) this.#at++;
    const parts: Accepts[] = [];
    for (let first = true; first || this.#peek() !== "]"; first = false) parts.push(this.#member());
    this.#at++;
    return (given) => parts.some((accepts) => accepts(given)) !== negated;
  }

  #member(): Accepts {
    const from = this.#take();
    if (from === "\\") return this.#escape(this.#take());
    const to = this.#source[this.#at + 1];
    if (this.#peek() !== "-" || to === undefined || to === "]") return this.#same(from);
    this.#at += 2;
    const last = to === "\\" ? this.#take() : to;
    const within = (given: string) => given >= from && given <= last;
    return this.#options.ignoreCase ? (given) => within(given) || within(given.toLowerCase()) || within(given.toUpperCase()) : within;
  }

  #same(char: string): Accepts {
    if (!this.#options.ignoreCase) return (given) => given === char;
    const lower = char.toLowerCase();
    return (given) => given.toLowerCase() === lower;
  }

  #char(accepts: Accepts): Piece {
    return (next) => this.#add({ kind: "char", accepts, next });
  }

  #edge(holds: (text: readonly string[], at: number) => boolean): Piece {
    return (next) => this.#add({ kind: "edge", holds, next });
  }

  #peek(): string | undefined {
    return this.#source[this.#at];
  }

  #take(): string {
    const char = this.#source[this.#at++];
    if (char === undefined) throw this.#bad("an end where more was expected");
    return char;
  }

  #bad(what: string): PathError {
    return new PathError(`/${this.#source.join("")}/ has ${what}`);
  }
}

const isWord = (char: string | undefined): boolean => char !== undefined && /^\w$/.test(char);
const classes: { [name: string]: Accepts } = {
  d: (char) => char >= "0" && char <= "9",
  w: isWord,
  s: (char) => /^\s$/.test(char),
};
const controls: { [name: string]: string } = { n: "\n", r: "\r", t: "\t", f: "\f", "0": "\0" };
