// Reads the fields of a file that a person wrote. A missing field or a wrong type is an error, an unknown field is a warning; each names
// its position.

import type { Place } from "./file-place.ts";

/** The fields of a map by key. Warns about unknown fields. */
export function fields(place: Place, known: readonly string[]): Map<string, Place> {
  const found = new Map<string, Place>();
  for (const { key, at, value } of place.entries()) {
    if (known.includes(key)) found.set(key, value);
    else at.warn(`The key '${key}' is not known here and has no effect; known are ${known.join(", ")}.`);
  }
  return found;
}

export function required(place: Place, given: ReadonlyMap<string, Place>, key: string): Place {
  const found = given.get(key);
  if (found !== undefined) return found;
  throw place.refuse(`missing field \`${key}\``, `a field ${key}`);
}

export function mapOf(place: Place, expected: string): Place {
  if (place.kind !== "map") throw place.refuse("This is not a map.", expected);
  return place;
}

export function listOf(place: Place, expected: string): Place[] {
  if (place.kind !== "list") throw place.refuse("This is not a list.", expected);
  return place.items();
}

/** A text. Unquoted numbers and words count as text, as they are written. */
export function textOf(place: Place, expected: string): string {
  if (place.kind === "map" || place.kind === "list" || place.kind === "null" || place.kind === "other")
    throw place.refuse("This is not a text.", expected);
  return place.text;
}

export function integer(place: Place | undefined): number {
  if (place === undefined) return 0;
  if (place.kind === "number" && Number.isSafeInteger(place.value)) return place.value as number;
  throw place.refuse(`This is not a whole number: ${place.text}`, "a whole number");
}

export function whole(place: Place | undefined, absent: number): number {
  if (place === undefined) return absent;
  const value = integer(place);
  if (value < 0) throw place.refuse(`This is below zero: ${value}`, "a whole number, not below 0");
  return value;
}
