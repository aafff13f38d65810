// Converts a handler's value to JSON. The result is that of JSON.stringify, except where that would lose data silently. A map becomes an
// object, a set a list, bytes base64 text, an error its name and message. A value that JSON cannot express is refused with its path.

import { type Json, jsonDepthMax } from "./json.ts";

/**
 * `undefined` becomes null and dates become texts; functions are left out. An instance of a class becomes the result of its `toJSON` or its
 * own fields. Throws a TypeError with the path of a value that JSON cannot carry: a bigint, a cycle, a map whose keys are not texts.
 */
export function toJson(value: unknown): Json {
  try {
    return convert(value, "", 0, undefined) ?? null;
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // Converts again, now with the path: keeping track of it in the first pass would cost more than the conversion itself.
    return convert(value, "", 0, { keys: [], above: [] }) ?? null;
  }
}

/** The position of the conversion: the keys that lead to the value, and the objects that contain it. */
interface Place {
  readonly keys: (string | number)[];
  readonly above: object[];
}

class Refused extends Error {}

/** Returns undefined for a value that JSON leaves out. */
function convert(value: unknown, key: string | number, depth: number, place: Place | undefined): Json | undefined {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : null;
    case "bigint":
      throw refused(place, "is a bigint, which JSON does not have: return Number(value) or String(value)");
    case "object":
      return value === null ? null : inside(value, key, depth, place);
    default:
      return undefined;
  }
}

function inside(value: object, key: string | number, depth: number, place: Place | undefined): Json | undefined {
  if (depth >= jsonDepthMax) {
    throw refused(place, place?.above.includes(value) ? "contains itself" : `is nested deeper than ${jsonDepthMax} levels`);
  }
  place?.above.push(value);
  const json = Array.isArray(value) ? items(value, depth + 1, place) : convertObject(value, key, depth + 1, place);
  place?.above.pop();
  return json;
}

function convertObject(value: object, key: string | number, depth: number, place: Place | undefined): Json | undefined {
  if (value instanceof Uint8Array) return base64Of(value);
  const { toJSON } = value as { toJSON?: unknown };
  if (typeof toJSON === "function") return convert(toJSON.call(value, String(key)), key, depth, place);
  // Most objects are plain and need no further checks.
  if (Object.getPrototypeOf(value) === Object.prototype) return fields(value, depth, place);
  if (value instanceof Map) return fields(Object.fromEntries(textKeys(value, place)), depth, place);
  if (value instanceof Set) return items([...value], depth, place);
  if (value instanceof Error) return fields(Object.assign({ name: value.name, message: value.message }, value), depth, place);
  if (value instanceof String || value instanceof Number || value instanceof Boolean) return convert(value.valueOf(), key, depth, place);
  return fields(value, depth, place);
}

/** Browsers have no Buffer. */
function base64Of(bytes: Uint8Array): string {
  if (typeof Buffer !== "undefined") return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

function items(values: readonly unknown[], depth: number, place: Place | undefined): Json[] {
  const list: Json[] = [];
  for (let at = 0; at < values.length; at++) {
    place?.keys.push(at);
    list.push(convert(values[at], at, depth, place) ?? null);
    place?.keys.pop();
  }
  return list;
}

function fields(value: object, depth: number, place: Place | undefined): Json {
  const object: { [key: string]: Json } = {};
  for (const key of Object.keys(value)) {
    place?.keys.push(key);
    const json = convert((value as { [key: string]: unknown })[key], key, depth, place);
    place?.keys.pop();
    if (json === undefined) continue;
    if (key !== "__proto__") object[key] = json;
    // Assigning `__proto__` would change the prototype instead of setting a field.
    else Object.defineProperty(object, key, { value: json, enumerable: true, configurable: true, writable: true });
  }
  return object;
}

function textKeys(map: ReadonlyMap<unknown, unknown>, place: Place | undefined): [string, unknown][] {
  return [...map].map(([key, value]) => {
    if (typeof key === "string") return [key, value];
    throw refused(place, `is a Map with a key that is a ${typeof key}, and JSON has texts only: return a list of pairs`);
  });
}

const keysNamedMax = 8;

/** An error with the path as people write it: `orders[2].total`. The path of a cycle repeats itself, so only its beginning is shown. */
function refused(place: Place | undefined, why: string): Error {
  if (place === undefined) return new Refused();
  let path = "";
  for (const key of place.keys.slice(0, keysNamedMax)) path += typeof key === "number" ? `[${key}]` : path === "" ? key : `.${key}`;
  const more = place.keys.length > keysNamedMax ? "..." : "";
  return new TypeError(`${path === "" ? "the value" : path + more} ${why}`);
}
