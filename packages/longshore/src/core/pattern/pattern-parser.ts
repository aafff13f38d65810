// Compiles the text of a regular expression to the states of the machine that linear-pattern.ts runs.

type Accepts = (code: number) => boolean;

/** One state of the machine: accepts a character, branches, requires an edge of the text or of a word, or ends. */
export type Place =
  | { readonly kind: "char"; readonly accepts: Accepts; readonly next: number }
  | { readonly kind: "fork"; readonly ways: readonly number[] }
  /** `holds` receives the characters before and after; -1 at the ends of the text. */
  | { readonly kind: "edge"; readonly holds: (before: number, after: number) => boolean; readonly next: number }
  | { readonly kind: "end" };

export class PatternError extends Error {
  override readonly name = "PatternError";
}

interface Syntax {
  readonly ignoreCase?: boolean;
  readonly dotAll?: boolean;
  readonly javascript?: boolean;
}

/** Counted repeats copy the states of the repeated part. This limit bounds the machine, and so the cost of each character. */
const placesMax = 2_000;
/** Bounds the copies made for repeats: copies of empty pieces add no state, so `placesMax` does not bound them. */
const copiesMax = 10_000;
/** The limit of nested groups: the parser is recursive. */
const groupsDeepMax = 50;
/** No person writes a longer pattern. */
const charsMax = 10_000;

/** Place 0 is the start of a match. */
export function parsePattern(source: string, syntax: Syntax): Place[] {
  if (source.length > charsMax) throw new PatternError(`a pattern has ${source.length} characters, expected at most ${charsMax}`);
  return new PatternParser([...source], syntax).machine();
}

/** A part of the machine under construction: receives the next state, adds its own states and returns the first of them. */
type Piece = (next: number) => number;
/** The meaning of a set or an escape: one character, or a class of them. */
type Meaning = { readonly code: number } | { readonly accepts: Accepts };

class PatternParser {
  readonly #source: readonly string[];
  readonly #syntax: Syntax;
  readonly #places: Place[] = [];
  #at = 0;
  #deep = 0;
  #copies = 0;

  constructor(source: readonly string[], syntax: Syntax) {
    this.#source = source;
    this.#syntax = syntax;
  }

  machine(): Place[] {
    const whole = this.#alternatives();
    if (this.#at < this.#source.length) throw this.#bad("an unmatched )");
    this.#add({ kind: "end" });
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
      // The mark of a lazy or possessive repeat is skipped: it decides only which match is found, not whether there is one.
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
        const ways = [next];
        begin = this.#add({ kind: "fork", ways });
        ways.push(piece(begin));
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
    if (found === null && this.#syntax.javascript) return null;
    if (found === null) throw this.#bad("a { that is not a repeat");
    this.#at = close + 1;
    const least = Number(found[1]);
    const most = found[2] === undefined ? least : found[3] === "" || found[3] === undefined ? null : Number(found[3]);
    if (most !== null && most < least) throw this.#bad("a repeat whose bounds are the wrong way round");
    return { least, most };
  }

  #atom(): Piece {
    const char = this.#take();
    if (char === "(") return this.#group();
    if (char === "[") return this.#char(this.#set());
    if (char === ".") return this.#char(this.#syntax.dotAll ? () => true : (code) => !isLineEnd(code, this.#syntax.javascript));
    if (char === "^") return this.#edge((before) => before === -1);
    if (char === "$") return this.#edge((_before, after) => after === -1);
    if (char === "\\") return this.#escaped();
    const literal = char === "{" && this.#syntax.javascript;
    if (char === "*" || char === "+" || char === "?" || (char === "{" && !literal)) throw this.#bad(`nothing before ${char}`);
    return this.#char(this.#same(codeOf(char)));
  }

  #group(): Piece {
    if (this.#peek() === "?") this.#groupKind();
    if (++this.#deep > groupsDeepMax) throw this.#bad("groups too deep inside each other");
    const inside = this.#alternatives();
    this.#deep--;
    if (this.#peek() !== ")") throw this.#bad("an unclosed (");
    this.#at++;
    return inside;
  }

  /** The name of a group has no effect. Lookaround is refused: it cannot be matched in linear time. */
  #groupKind(): void {
    const [, second, third] = this.#source.slice(this.#at, this.#at + 3);
    if (second === ":") this.#at += 2;
    else if (second === "<" && third !== "=" && third !== "!") {
      const close = this.#source.indexOf(">", this.#at);
      if (close === -1) throw this.#bad("an unclosed (");
      this.#at = close + 1;
    } else throw this.#bad("a group of a kind that is not supported, such as lookahead or lookbehind");
  }

  #escaped(): Piece {
    const char = this.#peek();
    if (char === "b" || char === "B") {
      this.#at++;
      return this.#edge((before, after) => (isWord(before) !== isWord(after)) === (char === "b"));
    }
    return this.#char(this.#accepting(this.#escape()));
  }

  #escape(): Meaning {
    const char = this.#take();
    const known = classes[char.toLowerCase()];
    if (known !== undefined) return { accepts: char === char.toLowerCase() ? known : (code) => !known(code) };
    if (char === "p" || char === "P") return { accepts: this.#property(char === "P") };
    if (char === "x" || char === "u") return { code: this.#hex(char) };
    const control = controls[char];
    if (control === undefined && /[1-9a-zA-Z]/.test(char)) throw this.#bad(`\\${char}, which is not supported`);
    return { code: codeOf(control ?? char) };
  }

  #hex(kind: "x" | "u"): number {
    const rest = this.#source.slice(this.#at, this.#at + 10).join("");
    const found = (kind === "x" ? /^([0-9a-fA-F]{2})/ : /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{4}))/).exec(rest);
    const code = found === null ? Number.NaN : Number.parseInt((found[1] ?? found[2]) as string, 16);
    if (found === null || !(code <= 0x10_ff_ff)) throw this.#bad(`\\${kind} without its digits`);
    this.#at += found[0].length;
    return code;
  }

  /** Node knows the Unicode properties of characters. Called for one character at a time, it cannot backtrack. */
  #property(negated: boolean): Accepts {
    const found = /^\{([A-Za-z_]{1,40}(?:=[A-Za-z_]{1,40})?)\}/.exec(this.#source.slice(this.#at, this.#at + 90).join(""));
    if (found === null) throw this.#bad("\\p without its property");
    let one: RegExp;
    try {
      one = new RegExp(`^\\p{${found[1]}}$`, "u");
    } catch {
      // Node throws for properties that it does not know.
      throw this.#bad(`\\p{${found[1]}}, which is not supported`);
    }
    this.#at += found[0].length;
    return (code) => one.test(String.fromCodePoint(code)) !== negated;
  }

  #set(): Accepts {
    const negated = this.#peek() === "^";
    if (negated) this.#at++;
    const members: Accepts[] = [];
    // In Java, a closing bracket that comes first is a member of the set.
    for (let first = !this.#syntax.javascript; first || this.#peek() !== "]"; first = false) members.push(this.#member());
    this.#at++;
    return (code) => members.some((accepts) => accepts(code)) !== negated;
  }

  #member(): Accepts {
    const from = this.#meaning();
    const to = this.#source[this.#at + 1];
    if (!("code" in from) || this.#peek() !== "-" || to === undefined || to === "]") return this.#accepting(from);
    this.#at++;
    const last = this.#meaning();
    const dash = this.#same(0x2d);
    if (!("code" in last)) return either(either(this.#accepting(from), dash), last.accepts);
    if (last.code < from.code) throw this.#bad("a range whose ends are the wrong way round");
    return this.#range(from.code, last.code);
  }

  #meaning(): Meaning {
    const char = this.#take();
    if (char !== "\\") return { code: codeOf(char) };
    if (this.#peek() !== "b") return this.#escape();
    this.#at++;
    return { code: 0x08 };
  }

  #accepting(meaning: Meaning): Accepts {
    return "code" in meaning ? this.#same(meaning.code) : meaning.accepts;
  }

  #range(from: number, to: number): Accepts {
    const within = (code: number) => code >= from && code <= to;
    return this.#syntax.ignoreCase ? (code) => within(code) || within(lower(code)) || within(upper(code)) : within;
  }

  #same(code: number): Accepts {
    if (!this.#syntax.ignoreCase) return (given) => given === code;
    const small = lower(code);
    return (given) => given === code || lower(given) === small;
  }

  #char(accepts: Accepts): Piece {
    return (next) => this.#add({ kind: "char", accepts, next });
  }

  #edge(holds: (before: number, after: number) => boolean): Piece {
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

  #bad(what: string): PatternError {
    return new PatternError(`/${this.#source.join("")}/ has ${what}`);
  }
}

function codeOf(char: string): number {
  return char.codePointAt(0) as number;
}

function lower(code: number): number {
  return singleOr(code, String.fromCodePoint(code).toLowerCase());
}

function upper(code: number): number {
  return singleOr(code, String.fromCodePoint(code).toUpperCase());
}

/** A character stays unchanged when its other case has several characters. */
function singleOr(code: number, changed: string): number {
  const first = codeOf(changed);
  return changed.length === String.fromCodePoint(first).length ? first : code;
}

function either(one: Accepts, other: Accepts): Accepts {
  return (code) => one(code) || other(code);
}

function isLineEnd(code: number, javascript: boolean | undefined): boolean {
  return code === 0x0a || (javascript === true && (code === 0x0d || code === 0x20_28 || code === 0x20_29));
}

function isWord(code: number): boolean {
  return (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a) || (code >= 0x30 && code <= 0x39) || code === 0x5f;
}

const classes: { readonly [name: string]: Accepts } = {
  d: (code) => code >= 0x30 && code <= 0x39,
  w: isWord,
  s: (code) => /^\s$/.test(String.fromCodePoint(code)),
};
const controls: { readonly [name: string]: string } = { n: "\n", r: "\r", t: "\t", f: "\f", v: "\v", "0": "\0" };
