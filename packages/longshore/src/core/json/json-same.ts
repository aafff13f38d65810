// Compares JSON texts by their values.

import { isObject } from "./json.ts";
import { ExactNumber, parseExact, writeExact } from "./json-exact.ts";

/** Whether two JSON texts have the same value. The order of keys and whitespace have no meaning; every digit of a number has. */
export function isSameJson(one: string, other: string): boolean {
  return one === other || sorted(one) === sorted(other);
}

function sorted(text: string): string {
  return writeExact(ordered(parseExact(text)));
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (!isObject(value) || value instanceof ExactNumber) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([key, member]) => [key, ordered(member)]));
}
