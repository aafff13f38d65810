// The line and column of a mistake in a JSON text. `JSON.parse` is fast and reports no positions. This scanner is slower. So requests are
// read by `JSON.parse`, and the scanner reads only those that it has refused.

export interface Position {
  /** From 1. */
  line: number;
  /** From 1; 0 only for the end of an empty line. */
  column: number;
}

export interface JsonFault extends Position {
  message: string;
  /** The path of the value with the mistake, such as `jobs[0].name`; empty at the top. */
  path: string;
}

export type JsonPath = readonly (string | number)[];

/** The scan stops at this depth and reports the depth as a fault. */
const depthMax = 128;

/** The first fault of `text`, or null when it is a valid JSON value. */
export function findJsonFault(text: string): JsonFault | null {
  try {
    const scanner = new Scanner(text);
    scanner.value([]);
    scanner.end();
    return null;
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    return { message: fault.message, path: pathText(fault.path), ...positionAt(text, fault.offset) };
  }
}

/**
 * The same for a text that is valid before `from`. Looks at `chars` characters only, so that a mistake in megabytes is found without
 * reading all of them again. `opening` are the brackets that are open at `from`, such as `[{`. Returns null when the mistake is further on.
 * The fault has no path, because the names are before `from`.
 */
export function findFaultFrom(text: string, from: number, opening: string, chars: number): JsonFault | null {
  const window = opening + text.slice(from, from + chars);
  const isLast = from + chars >= text.length;
  try {
    const scanner = new Scanner(window);
    scanner.value([]);
    scanner.end();
    return null;
  } catch (fault) {
    if (!(fault instanceof Fault)) throw fault;
    if (fault.offset >= window.length && !isLast) return null;
    return { message: fault.message, path: "", ...positionAt(text, from + fault.offset - opening.length) };
  }
}

/**
 * The position of the last character of the value at `path`. For a path that does not exist, the position of the last value on the path
 * that exists. `text` must be JSON.
 */
export function positionOf(text: string, path: JsonPath): Position {
  try {
    return positionAt(text, new Scanner(text).find(path) - 1);
  } catch (fault) {
    // Nested deeper than the scanner reads: this is the nearest position.
    if (fault instanceof Fault) return positionAt(text, fault.offset);
    throw fault;
  }
}

/** A path as text, such as `jobs[0].depends_on[1]`. */
export function pathText(path: JsonPath): string {
  let text = "";
  for (const key of path) text += typeof key === "number" ? `[${key}]` : text === "" ? key : `.${key}`;
  return text;
}

/** `offset` counts from 0; one past the last character means the end of the text. */
function positionAt(text: string, offset: number): Position {
  const at = Math.min(offset, text.length);
  let line = 1;
  let lineStart = 0;
  for (let next = text.indexOf("\n"); next >= 0 && next < at; next = text.indexOf("\n", lineStart)) {
    line++;
    lineStart = next + 1;
  }
  return { line, column: Math.min(at + 1, text.length) - lineStart };
}

class Fault extends Error {
  readonly offset: number;
  readonly path: JsonPath;

  constructor(message: string, offset: number, path: JsonPath) {
    super(message);
    this.offset = offset;
    this.path = path;
  }
}

class Scanner {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  end(): void {
    this.#space();
    if (this.#at < this.#text.length) throw new Fault("trailing characters", this.#at, []);
  }

  /** Skips one value. */
  value(path: JsonPath): void {
    this.#space();
    const first = this.#text[this.#at];
    if (first === undefined) throw this.#eof("a value", path);
    if (path.length > depthMax) throw new Fault("recursion limit exceeded", this.#at, path);
    if (first === "{") this.#members(path, (key) => this.value([...path, key]));
    else if (first === "[") this.#elements(path, (index) => this.value([...path, index]));
    else if (first === '"') this.#string(path);
    else this.#literal(path);
  }

  /** The offset after the value at `path`. */
  find(path: JsonPath): number {
    this.#space();
    const [step, ...rest] = path;
    const first = this.#text[this.#at];
    let found: number | undefined;
    const visit = (key: string | number) => {
      if (key === step && found === undefined) found = this.find(rest);
      else this.value([]);
    };
    if (first === "{" && typeof step === "string") this.#members([], visit);
    else if (first === "[" && typeof step === "number") this.#elements([], visit);
    else this.value([]);
    return found ?? this.#at;
  }

  #members(path: JsonPath, visit: (key: string) => void): void {
    this.#at++;
    for (let first = true; ; first = false) {
      this.#space();
      const next = this.#text[this.#at];
      if (next === undefined) throw this.#eof("an object", path);
      if (next === "}" && first) break;
      if (next !== '"') throw new Fault(next === "}" ? "trailing comma" : "key must be a string", this.#at, path);
      const key = this.#string(path);
      this.#space();
      if (this.#at >= this.#text.length) throw this.#eof("an object", path);
      if (this.#text[this.#at] !== ":") throw new Fault("expected `:`", this.#at, path);
      this.#at++;
      visit(key);
      if (this.#closed("}", "an object", path)) break;
    }
    this.#at++;
  }

  #elements(path: JsonPath, visit: (index: number) => void): void {
    this.#at++;
    for (let index = 0; ; index++) {
      this.#space();
      const next = this.#text[this.#at];
      if (next === undefined) throw this.#eof("a list", path);
      if (next === "]" && index === 0) break;
      if (next === "]") throw new Fault("trailing comma", this.#at, path);
      visit(index);
      if (this.#closed("]", "a list", path)) break;
    }
    this.#at++;
  }

  /** After a member or element: returns true at the closing bracket, false after a comma. */
  #closed(bracket: string, what: string, path: JsonPath): boolean {
    this.#space();
    const next = this.#text[this.#at];
    if (next === undefined) throw this.#eof(what, path);
    if (next === bracket) return true;
    if (next !== ",") throw new Fault(`expected \`,\` or \`${bracket}\``, this.#at, path);
    this.#at++;
    return false;
  }

  #string(path: JsonPath): string {
    const start = this.#at;
    for (this.#at++; ; this.#at++) {
      const code = this.#text.charCodeAt(this.#at);
      if (Number.isNaN(code)) throw this.#eof("a string", path);
      if (code < 0x20) throw new Fault("control character (\\u0000-\\u001F) found while parsing a string", this.#at, path);
      if (code === 0x22) break;
      if (code === 0x5c) this.#escape(path);
    }
    this.#at++;
    return JSON.parse(this.#text.slice(start, this.#at)) as string;
  }

  #escape(path: JsonPath): void {
    this.#at++;
    const letter = this.#text[this.#at];
    if (letter === undefined) throw this.#eof("a string", path);
    if (letter === "u") {
      if (!/^[0-9a-fA-F]{4}$/.test(this.#text.slice(this.#at + 1, this.#at + 5))) throw new Fault("invalid escape", this.#at, path);
      this.#at += 4;
    } else if (!'"\\/bfnrt'.includes(letter)) throw new Fault("invalid escape", this.#at, path);
  }

  #literal(path: JsonPath): void {
    const match = /^(?:true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/.exec(
      this.#text.slice(this.#at, this.#at + literalCharsMax),
    );
    if (match === null) throw new Fault("expected value", this.#at, path);
    this.#at += match[0].length;
  }

  #space(): void {
    while (this.#at < this.#text.length && " \t\r\n".includes(this.#text[this.#at] as string)) this.#at++;
  }

  #eof(what: string, path: JsonPath): Fault {
    return new Fault(`EOF while parsing ${what}`, this.#text.length, path);
  }
}

/** Bounds what the pattern matches; no real number has more digits. */
const literalCharsMax = 1_000;
