// JSON values, and checks that run before code walks a value.

import { ExactNumber } from "./json-exact.ts";

/** A value that JSON can carry. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A JSON object. */
export type JsonObject = { [key: string]: Json };

/** Deep enough for every real document, and shallow enough that recursive functions cannot overflow the stack. */
export const jsonDepthMax = 100;

export function isObject(value: unknown): value is { [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** Whether the value has no members: a text, a number of any size, true, false or null. */
export function isScalar(value: unknown): value is null | boolean | number | string {
  return typeof value !== "object" || value === null || value instanceof ExactNumber;
}

/**
 * Sets a member whose key comes from outside. A plain assignment to `__proto__` would set the prototype; here it becomes a normal member.
 */
export function setOwn<T>(object: { [key: string]: T }, key: string, value: T): void {
  if (key === "__proto__") Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  else object[key] = value;
}

/** True when `text` nests arrays or objects deeper than `max`. Scans bytes without parsing, so it is cheap and cannot overflow. */
export function deeperThan(text: string, max: number = jsonDepthMax): boolean {
  if (!hasMoreBrackets(text, max)) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at);
    else if (code === 0x7b || code === 0x5b) {
      if (++depth > max) return true;
    } else if (code === 0x7d || code === 0x5d) depth--;
  }
  return false;
}

/** The offset of the quote that ends a string, or the end of the text when there is none. Uses `indexOf`, which is fast. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    // Preceded by an even number of backslashes, the quote itself is not escaped.
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/** A text with at most `max` brackets cannot nest deeper than `max`. Uses `indexOf`, which skips most of a long text with few brackets. */
function hasMoreBrackets(text: string, max: number): boolean {
  let count = 0;
  for (const bracket of ["{", "["]) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) if (++count > max) return true;
  }
  return false;
}

/** Returns undefined for invalid JSON: the caller reports what it expected. */
export function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
