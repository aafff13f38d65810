// Follows paths and types in JSON Schemas, as far as this is possible. When a schema does not decide a question, the result says so: a
// wrong finding is worse than none.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { defsOf, type SchemaPlace } from "../../../core/schema/violations.ts";
import type { Path } from "./path.ts";

export type Walked =
  | { readonly kind: "found"; readonly place: SchemaPlace }
  /** The schema does not describe the value. */
  | { readonly kind: "open" }
  /** An object that has no such property and allows no additional ones. */
  | { readonly kind: "unknown"; readonly property: string }
  /** A field of a value that is not an object, or an index of a value that is not a list. */
  | { readonly kind: "wrong"; readonly part: string | number; readonly type: string };

/** Maximum number of references to references. More are treated as a cycle. */
const referencesMax = 20;

export function walk(place: SchemaPlace, path: Path): Walked {
  let here: Walked = { kind: "found", place };
  for (const part of path) {
    if (here.kind !== "found") return here;
    here = step(here.place, part);
  }
  return here.kind === "found" && resolve(here.place) === null ? { kind: "open" } : here;
}

function step(place: SchemaPlace, part: string | number): Walked {
  const schema = resolve(place);
  if (schema === null || isCombined(schema)) return { kind: "open" };
  const inside = (found: Json): Walked => ({ kind: "found", place: { schema: found, defs: defsOf(place) } });
  const types = typesOf(schema);
  const wanted = typeof part === "number" ? "array" : "object";
  if (types !== null && !types.includes(wanted)) return { kind: "wrong", part, type: types.join(" or ") };
  if (typeof part === "number") return isObject(schema.items) ? inside(schema.items as Json) : { kind: "open" };
  const { properties, additionalProperties } = schema;
  if (isObject(properties) && Object.hasOwn(properties, part)) return inside(properties[part] as Json);
  if (additionalProperties === false) return { kind: "unknown", property: part };
  return isObject(additionalProperties) ? inside(additionalProperties as Json) : { kind: "open" };
}

/** The allowed JSON types; null when the schema does not restrict them, or cannot be followed. */
export function typesAt(place: SchemaPlace): readonly string[] | null {
  const schema = resolve(place);
  return schema === null || isCombined(schema) ? null : typesOf(schema);
}

/** The schema after following references; null when it is empty or no object, a target is missing, or there are too many references. */
export function resolve(place: SchemaPlace): JsonObject | null {
  let { schema } = place;
  const defs = defsOf(place);
  for (let hops = 0; hops < referencesMax; hops++) {
    if (!isObject(schema)) return null;
    const { $ref } = schema;
    if (typeof $ref !== "string") return Object.keys(schema).length === 0 ? null : (schema as JsonObject);
    const name = /^#\/(?:\$defs|definitions)\/([^/]+)$/.exec($ref)?.[1];
    const found = name === undefined || !Object.hasOwn(defs, name) ? null : (defs[name] as Json);
    schema = found;
  }
  return null;
}

function typesOf({ type, const: constant, enum: options }: JsonObject): readonly string[] | null {
  if (typeof type === "string") return [type];
  if (Array.isArray(type)) return type.filter((each) => typeof each === "string");
  if (constant !== undefined) return [typeOf(constant)];
  return Array.isArray(options) ? [...new Set(options.map(typeOf))] : null;
}

function typeOf(value: Json): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  return typeof value === "number" ? (Number.isInteger(value) ? "integer" : "number") : typeof value;
}

/** A schema with alternatives or conditions cannot be followed. */
function isCombined(schema: JsonObject): boolean {
  return ["anyOf", "oneOf", "allOf", "not", "if"].some((keyword) => Object.hasOwn(schema, keyword));
}
