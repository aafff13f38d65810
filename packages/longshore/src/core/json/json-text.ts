// JSON as text, for content that is identified by the hash of its text. Parsing and writing it again would turn 1.0 into 1, round large whole
// numbers, and put keys that look like numbers first.

import type { Sliced } from "../slices/slice-work.ts";
import type { Json } from "./json.ts";
import { sliceChars } from "./json-slices.ts";

const quote = 0x22;
const backslash = 0x5c;

/**
 * The same JSON without whitespace between its tokens, and with every string in its shortest spelling. `text` must be JSON. Works in slices
 * of `chars` characters, as `memberTexts` does.
 */
export function* compactText(text: string, chars = sliceChars): Sliced<string> {
  const pieces: string[] = [];
  let from = 0;
  let limit = chars;
  for (let at = 0; at < text.length; ) {
    if (at >= limit) {
      yield;
      limit = at + chars;
    }
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = pieceEnd(text, at + 1, at + 1 + chars);
      const isWhole = text.charCodeAt(end) === quote;
      if (isWhole && !text.slice(at, end).includes("\\")) at = end + 1;
      else {
        pieces.push(text.slice(from, at + 1));
        from = yield* shortenString(text, at + 1, chars, pieces);
        at = from + 1;
      }
    } else if (isSpace(code)) {
      pieces.push(text.slice(from, at));
      while (at < limit && isSpace(text.charCodeAt(at))) at++;
      from = at;
    } else at++;
  }
  pieces.push(text.slice(from));
  return pieces.join("");
}

/** Adds the text between the quotes of a string to `parts`, piece by piece, and returns the offset of the closing quote. */
function* shortenString(text: string, start: number, chars: number, pieces: string[]): Sliced<number> {
  for (let at = start; ; ) {
    const end = pieceEnd(text, at, at + chars);
    const piece = text.slice(at, end);
    pieces.push(piece.includes("\\") ? JSON.stringify(JSON.parse(`"${piece}"`)).slice(1, -1) : piece);
    if (end >= text.length || text.charCodeAt(end) === quote) return end;
    at = end;
    yield;
  }
}

/** The members of an object, each as it is written; for a duplicate name, the last one. `text` must be the JSON of an object. */
export function* memberTexts(text: string, chars = sliceChars): Sliced<Map<string, string>> {
  const members = new Map<string, string>();
  let depth = 0;
  let name: string | null = null;
  let from = 0;
  let limit = chars;
  const close = (at: number) => {
    if (name !== null) members.set(name, text.slice(from, at).trim());
    name = null;
  };
  for (let at = 0; at < text.length; ) {
    if (at >= limit) {
      yield;
      limit = at + chars;
    }
    const code = text.charCodeAt(at);
    if (code === quote) {
      const end = yield* stringEnd(text, at, chars);
      if (depth === 1 && name === null) {
        name = JSON.parse(text.slice(at, end)) as string;
        from = text.indexOf(":", end) + 1;
        at = from;
      } else at = end;
      continue;
    }
    if (code === 0x7b || code === 0x5b) depth++;
    else if (code === 0x7d || code === 0x5d) {
      if (--depth === 0) close(at);
    } else if (code === 0x2c && depth === 1) close(at);
    at++;
  }
  return members;
}

/** The JSON of a value with sorted keys, for values whose key order has no meaning. */
export function sortedText(value: Json): string {
  return JSON.stringify(value, (_key, member: Json) => {
    if (typeof member !== "object" || member === null || Array.isArray(member)) return member;
    return Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}

/** The offset after the closing quote of the string that opens at `at`. */
function* stringEnd(text: string, at: number, chars: number): Sliced<number> {
  let end = pieceEnd(text, at + 1, at + chars);
  while (end < text.length && text.charCodeAt(end) !== quote) {
    yield;
    end = pieceEnd(text, end, end + chars);
  }
  return Math.min(end + 1, text.length);
}

/**
 * The offset where a string that is read from `from` ends. For a long string: the first offset from `limit` on that cuts no escape and no
 * surrogate pair.
 */
function pieceEnd(text: string, from: number, limit: number): number {
  let at = from;
  let before = 0;
  while (at < text.length && text.charCodeAt(at) !== quote) {
    if (at >= limit && !(isHigh(before) && isLow(unitAt(text, at)))) return at;
    if (at >= limit - longestUnit) before = unitAt(text, at);
    at += unitChars(text, at);
  }
  return at;
}

/** `\u` and four digits. */
const longestUnit = 6;

function unitChars(text: string, at: number): number {
  if (text.charCodeAt(at) !== backslash) return 1;
  return text.charCodeAt(at + 1) === 0x75 ? longestUnit : 2;
}

/** The code unit at this position. For a short escape, any unit that is not half of a surrogate pair. */
function unitAt(text: string, at: number): number {
  if (unitChars(text, at) === longestUnit) return Number.parseInt(text.slice(at + 2, at + longestUnit), 16);
  return text.charCodeAt(at);
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}
