// Reads JSON objects with a table of fields. Known fields are converted to their type, or get their default; unknown fields are kept, so
// that a definition is returned as it was sent.
//
// As in Conductor's own reader, a number may be sent as a text and a text as a number. Null means 0 for a number and false for a flag, when
// the field has a default.

import { isObject, type Json } from "../../../core/json/json.ts";
import { atOnce, type Sliced } from "../../../core/slices/slice-work.ts";
import type { Violations } from "./violation.ts";

/** Reads one field. `given` is undefined when the field is absent. Returns undefined to leave the field out. */
export type Field = (given: Json | undefined, path: string, violations: Violations) => unknown;

export type FieldTable = { readonly [name: string]: Field };

/** The result of reading a field. A large field is read in slices. */
export class Nested {
  readonly read: Sliced<unknown>;

  constructor(read: Sliced<unknown>) {
    this.read = read;
  }
}

/** Null when `source` is not an object. */
export function readFields<Model>(table: FieldTable, source: unknown, path: string, violations: Violations): Model | null {
  return atOnce(readFieldsInSlices<Model>(table, source, path, violations));
}

export function* readFieldsInSlices<Model>(table: FieldTable, source: unknown, path: string, violations: Violations): Sliced<Model | null> {
  if (!isObject(source)) {
    violations.add(path, "must be an object", source);
    return null;
  }
  const read: { [name: string]: unknown } = {};
  for (const name of Object.keys(table)) {
    const found = (table[name] as Field)(own(source, name), `${path}.${name}`, violations);
    const value = found instanceof Nested ? yield* found.read : found;
    if (value !== undefined) read[name] = value;
  }
  for (const name of Object.keys(source)) if (!Object.hasOwn(table, name) && name !== "__proto__") read[name] = source[name];
  return read as Model;
}

function own(source: { [key: string]: unknown }, name: string): Json | undefined {
  return Object.hasOwn(source, name) ? (source[name] as Json) : undefined;
}

export const text: Field = (given, path, violations) => {
  if (given === undefined || given === null) return undefined;
  if (typeof given === "string") return given;
  if (typeof given === "number" || typeof given === "boolean") return String(given);
  return void violations.add(path, "must be a text");
};

/** A number with a default. */
export const whole =
  (otherwise: number): Field =>
  (given, path, violations) => {
    if (given === undefined) return otherwise;
    return given === null ? 0 : (wholeNumber(given, path, violations) ?? otherwise);
  };

/** An optional number. */
export const optionalWhole: Field = (given, path, violations) =>
  given === undefined || given === null ? undefined : wholeNumber(given, path, violations);

function wholeNumber(given: Json, path: string, violations: Violations): number | undefined {
  const number = typeof given === "string" && /^\s*-?\d+\s*$/.test(given) ? Number(given) : given;
  if (typeof number === "number" && Number.isFinite(number) && Math.abs(number) <= Number.MAX_SAFE_INTEGER) return Math.trunc(number);
  return void violations.add(path, "must be a whole number", given);
}

export const flag =
  (otherwise: boolean): Field =>
  (given, path, violations) => {
    if (given === undefined) return otherwise;
    if (given === null) return false;
    if (typeof given === "boolean") return given;
    if (given === "true" || given === "false") return given === "true";
    violations.add(path, "must be true or false", given);
    return otherwise;
  };

export const optionalFlag: Field = (given, path, violations) =>
  given === undefined || given === null ? undefined : flag(false)(given, path, violations);

export const choice =
  (known: readonly string[], otherwise: string | undefined): Field =>
  (given, path, violations) => {
    if (given === undefined || given === null) return otherwise;
    if (typeof given === "string" && known.includes(given)) return given;
    violations.add(path, `must be one of ${known.join(", ")}`, given);
    return otherwise;
  };

export const map: Field = (given, path, violations) => {
  if (given === undefined || given === null) return {};
  if (isObject(given)) return given;
  violations.add(path, "must be an object", given);
  return {};
};

export const optionalMap: Field = (given, path, violations) =>
  given === undefined || given === null ? undefined : map(given, path, violations);

export const texts: Field = (given, path, violations) => {
  if (given === undefined || given === null) return [];
  if (Array.isArray(given) && given.every((item) => typeof item === "string")) return given;
  violations.add(path, "must be a list of texts", given);
  return [];
};

export const anything: Field = (given) => given ?? undefined;
