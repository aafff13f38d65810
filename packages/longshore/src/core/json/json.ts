// JSON values, and the checks before they are walked.

import { ExactNumber } from "./json-exact.ts";

/** A value that JSON can carry. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A JSON object. */
export type JsonObject = { [key: string]: Json };

/** Deep enough for any real document; shallow enough that recursive walkers cannot overflow the stack. */
export const jsonDepthMax = 100;

export function isObject(value: unknown): value is { [key: string]: unknown } {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof ExactNumber);
}

/** Whether it has no parts to walk: a text, a number of any size, true, false or null. */
export function isScalar(value: unknown): value is null | boolean | number | string {
  return typeof value !== "object" || value === null || value instanceof ExactNumber;
}

/** A key from outside: `__proto__` becomes a member like any other, where an assignment would set the prototype. */
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

/** Where the quote is that ends a string, found at the speed of a search; the end of the text where there is none. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at - 1;
    while (text.charCodeAt(before) === 0x5c) before--;
    // An even number of backslashes are escaped themselves.
    if ((at - before) % 2 === 1) return at;
  }
  return text.length;
}

/** Without them no text is that deep; of long texts with few, most is passed over at the speed of a search. */
function hasMoreBrackets(text: string, max: number): boolean {
  let count = 0;
  for (const bracket of ["{", "["]) {
    for (let at = text.indexOf(bracket); at !== -1; at = text.indexOf(bracket, at + 1)) if (++count > max) return true;
  }
  return false;
}

/** Undefined for what is not JSON: the caller reports what it expected instead. */
export function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
