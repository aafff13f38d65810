// JSON whose numbers keep all their digits. JSON.parse turns every number into a double: whole numbers above 2^53 are rounded, and 1e400
// becomes Infinity, which is written as null. Here, such a number is an ExactNumber, which keeps its original text. A text without such
// numbers (nearly every text) is scanned for them once, and then read by JSON.parse.

import { changedNumbers, type Stretch } from "./json-numbers.ts";

/** How many ExactNumbers JSON.stringify has found so far. If it did not change, the text that JSON.stringify wrote is exact. */
let met = 0;

/**
 * What `writeExact` collects while JSON.stringify runs: the literals in order. Each is written as the mark first and replaced at the end.
 */
interface Writing {
  readonly mark: string;
  readonly literals: string[];
}
/** Undefined outside of `writeExact`; null inside it until JSON.stringify finds the first ExactNumber. */
let writing: Writing | null | undefined;

/** A sender cannot guess the mark, so no text that it sends can be mistaken for a number. */
function newMark(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(36).padStart(2, "0")).join("");
}

/**
 * A number that a double cannot hold. Code that does not know this class gets the nearest double in arithmetic and in JSON, or null in JSON
 * when it is infinite.
 */
export class ExactNumber {
  /** As it was written in the JSON. */
  readonly #literal: string;

  constructor(literal: string) {
    this.#literal = literal;
  }

  valueOf(): number {
    return Number(this.#literal);
  }

  toString(): string {
    return this.#literal;
  }

  /** What MongoDB's driver writes: BSON has whole numbers of 64 bits. */
  toBSON(): number | bigint {
    if (!/^-?\d{1,19}$/.test(this.#literal)) return Number(this.#literal);
    const whole = BigInt(this.#literal);
    return BigInt.asIntN(64, whole) === whole ? whole : Number(whole);
  }

  toJSON(): number | string {
    met++;
    if (writing === undefined) return Number(this.#literal);
    writing ??= { mark: newMark(), literals: [] };
    writing.literals.push(this.#literal);
    return writing.mark;
  }
}

/** Like JSON.parse, with an ExactNumber for each number that a double would change. */
export function parseExact(text: string): unknown {
  const changed = changedNumbers(text);
  if (changed.length === 0) return JSON.parse(text);
  const mark = newMark();
  try {
    return restored(JSON.parse(markNumbers(text, changed, mark)), mark);
  } catch {
    // JSON.parse of the original text throws an error about that text, not about the marked one.
    return JSON.parse(text);
  }
}

/** Replaces each marked text in the value by its number, in place. This walk costs a tenth of a JSON.parse reviver. */
function restored(value: unknown, mark: string): unknown {
  if (typeof value === "string") return value.startsWith(mark) ? new ExactNumber(value.slice(mark.length)) : value;
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      const member: unknown = value[at];
      if (typeof member === "string" || typeof member === "object") value[at] = restored(member, mark);
    }
    return value;
  }
  const object = value as { [key: string]: unknown };
  // Every name is the object's own property, so even `__proto__` is a plain member here.
  for (const key of Object.keys(object)) {
    const member = object[key];
    if (typeof member === "string" && member.startsWith(mark)) object[key] = restored(member, mark);
    else if (typeof member === "object" && member !== null) restored(member, mark);
  }
  return value;
}

/** Like JSON.stringify, but every ExactNumber is written as it was read. */
export function writeExact(value: unknown, indent?: number): string {
  const outer = writing;
  writing = null;
  try {
    const text = JSON.stringify(value, undefined, indent);
    return writing === null ? text : unmarked(text, writing);
  } finally {
    writing = outer;
  }
}

function unmarked(text: string, { mark, literals }: Writing): string {
  return text
    .split(`"${mark}"`)
    .map((piece, at) => piece + (literals[at] ?? ""))
    .join("");
}

/** The same value with the nearest double for each ExactNumber, which may be infinite: for code that checks the type of numbers. */
export function rounded<T>(value: T): T {
  const before = met;
  const text = writeExact(value);
  return met === before ? value : (JSON.parse(text) as T);
}

/** The same text with each of these numbers as a string that begins with the mark. Invalid JSON stays invalid. */
function markNumbers(text: string, numbers: readonly Stretch[], mark: string): string {
  const pieces: string[] = [];
  let before = 0;
  for (const { from, end } of numbers) {
    pieces.push(text.slice(before, from), `"${mark}${text.slice(from, end)}"`);
    before = end;
  }
  return pieces.join("") + text.slice(before);
}
