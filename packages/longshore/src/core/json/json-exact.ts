// JSON whose numbers keep all their digits. JSON.parse makes a double of every number: whole numbers above 2^53 are rounded, and 1e400 becomes
// infinite, which is written as null. Here such a number is a value of its own that remembers how it was written. A text without one, which
// is nearly every text, is read and written by JSON.parse and JSON.stringify as ever, after one look at its digits.

import { randomBytes } from "node:crypto";
import { changedNumbers, type Stretch } from "./json-numbers.ts";

/** How often JSON.stringify has found one: this alone shows whether a text that it wrote is exact. */
let met = 0;

/** What `writeExact` collects while JSON.stringify runs: the literals in order, each written as the mark until the end. */
interface Writing {
  readonly mark: string;
  readonly literals: string[];
}
/** Undefined outside of `writeExact`, null in it while JSON.stringify has met no ExactNumber. */
let writing: Writing | null | undefined;

/** No sender can guess it, so that no text of its own reads like a number. */
function newMark(): string {
  return randomBytes(12).toString("base64url");
}

/** A number that no double holds. Code that does not know of it computes with, compares and writes the nearest double. */
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
    // The error is about the text itself, not about what was made of it.
    return JSON.parse(text);
  }
}

/** The value with a number for each marked text; changed in place. A walk costs a tenth of what a reviver of JSON.parse does. */
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
  // Every name is the object's own, so that even `__proto__` is a plain member here.
  for (const key of Object.keys(object)) {
    const member = object[key];
    if (typeof member === "string" && member.startsWith(mark)) object[key] = restored(member, mark);
    else if (typeof member === "object" && member !== null) restored(member, mark);
  }
  return value;
}

/** Like JSON.stringify, with every ExactNumber as it was written. One pass, whether there is one or not. */
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
    .map((part, at) => part + (literals[at] ?? ""))
    .join("");
}

/** The same with the nearest double for each ExactNumber, for code that looks at the type of numbers. */
export function rounded<T>(value: T): T {
  const before = met;
  const text = JSON.stringify(value);
  return met === before ? value : (JSON.parse(text) as T);
}

/** The same text with each of these numbers as a string that begins with the mark. What is no JSON stays none. */
function markNumbers(text: string, numbers: readonly Stretch[], mark: string): string {
  const parts: string[] = [];
  let before = 0;
  for (const { from, end } of numbers) {
    parts.push(text.slice(before, from), `"${mark}${text.slice(from, end)}"`);
    before = end;
  }
  return parts.join("") + text.slice(before);
}
