// JSON whose numbers keep all their digits. JSON.parse makes a double of every number: whole numbers above 2^53 are rounded, and 1e400 becomes
// infinite, which is written as null. Here such a number is a value of its own that remembers how it was written. A text without one, which
// is nearly every text, is read and written by JSON.parse and JSON.stringify as ever, after one look at its digits.

import { randomUUID } from "node:crypto";
import { changedNumbers, type Stretch } from "./json-numbers.ts";

/** How often JSON.stringify has met one: this alone says whether a text that it wrote is exact. */
let met = 0;

/** A number that no double holds. Code that does not know of it computes with, compares and writes the nearest double. */
export class ExactNumber {
  /** As it stood in the JSON. */
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

  toJSON(): number {
    met++;
    return Number(this.#literal);
  }
}

/** Like JSON.parse, with an ExactNumber for each number that a double would change. */
export function parseExact(text: string): unknown {
  const changed = changedNumbers(text);
  if (changed.length === 0) return JSON.parse(text);
  // No sender can guess it, so that no text of its own reads like a number.
  const mark = randomUUID();
  try {
    return JSON.parse(markNumbers(text, changed, mark), (_key, value: unknown) =>
      typeof value === "string" && value.startsWith(mark) ? new ExactNumber(value.slice(mark.length)) : value,
    );
  } catch {
    // The error is about the text itself, not about what was made of it.
    return JSON.parse(text);
  }
}

/** Like JSON.stringify, with every ExactNumber as it was written. */
export function writeExact(value: unknown, indent?: number): string {
  const before = met;
  const text = JSON.stringify(value, undefined, indent);
  return met === before ? text : writeMarked(value, indent);
}

/** The same with the nearest double for each ExactNumber, for code that looks at the type of numbers. */
export function rounded<T>(value: T): T {
  const before = met;
  const text = JSON.stringify(value);
  return met === before ? value : (JSON.parse(text) as T);
}

function writeMarked(value: unknown, indent: number | undefined): string {
  const mark = randomUUID();
  const literals: string[] = [];
  const text = JSON.stringify(
    value,
    function (this: { [key: string]: unknown }, key, written: unknown) {
      const member = this[key];
      if (!(member instanceof ExactNumber)) return written;
      literals.push(String(member));
      return mark;
    },
    indent,
  );
  const parts = text.split(`"${mark}"`);
  return parts.map((part, at) => part + (literals[at] ?? "")).join("");
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
