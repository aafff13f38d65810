// The checks of JSON Schema keywords.

import { isObject, type Json, type JsonObject } from "../json/json.ts";
import { shown } from "../text.ts";
import type { At, Check, Violation } from "./violations.ts";

type Keyword = (check: Check, argument: Json, at: At) => Violation[];

const none: Violation[] = [];

/** The message does not contain the value: it may be a secret, and the caller has it. */
function expected(at: At, what: string): Violation[] {
  return [{ path: at.path, message: `expected ${what}` }];
}

const types: { readonly [name: string]: (value: Json) => boolean } = {
  null: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  number: (value) => typeof value === "number",
  integer: (value) => Number.isInteger(value),
  string: (value) => typeof value === "string",
  array: (value) => Array.isArray(value),
  object: (value) => isObject(value),
};

/** A keyword for numbers; `words` describe what it expects. */
function numeric(fits: (value: number, bound: number) => boolean, words: string): Keyword {
  return (_check, bound, at) =>
    typeof at.value !== "number" || typeof bound !== "number" || fits(at.value, bound) ? none : expected(at, `a number ${words} ${bound}`);
}

/** A keyword for counts, such as lengths; `words` describe what it expects. */
function counted(count: (value: Json) => number | null, fits: (count: number, bound: number) => boolean, words: string): Keyword {
  return (_check, bound, at) => {
    const number = count(at.value);
    return number === null || typeof bound !== "number" || fits(number, bound)
      ? none
      : expected(at, `${words.replace("N", String(bound))}`);
  };
}

const least = (count: number, bound: number): boolean => count >= bound;
const most = (count: number, bound: number): boolean => count <= bound;
const characters = (value: Json): number | null => (typeof value === "string" ? codePoints(value) : null);
const items = (value: Json): number | null => (Array.isArray(value) ? value.length : null);
const members = (value: Json): number | null => (isObject(value) ? Object.keys(value).length : null);

export const keywords: { readonly [name: string]: Keyword } = {
  $ref: (check, to, at) => (typeof to === "string" ? check.of(check.referenced(to), at.value, at.path, at.depth) : none),
  type: (_check, type, at) => {
    const names = (Array.isArray(type) ? type : [type]).filter(
      (name) => typeof name === "string" && Object.hasOwn(types, name),
    ) as string[];
    return names.length === 0 || names.some((name) => types[name]?.(at.value))
      ? none
      : expected(at, `a value of type ${names.join(" or ")}, found ${typeName(at.value)}`);
  },
  enum: (check, options, at) =>
    !Array.isArray(options) || options.some((option) => check.equal(option, at.value)) ? none : expected(at, `one of ${shown(options)}`),
  const: (check, constant, at) => (check.equal(constant, at.value) ? none : expected(at, shown(constant))),
  minimum: numeric(least, "from"),
  maximum: numeric(most, "up to"),
  exclusiveMinimum: numeric((value, bound) => value > bound, "above"),
  exclusiveMaximum: numeric((value, bound) => value < bound, "below"),
  multipleOf: numeric((value, bound) => bound <= 0 || Number.isInteger(value / bound), "that is a multiple of"),
  minLength: counted(characters, least, "a text of at least N characters"),
  maxLength: counted(characters, most, "a text of at most N characters"),
  minItems: counted(items, least, "a list of at least N items"),
  maxItems: counted(items, most, "a list of at most N items"),
  minProperties: counted(members, least, "an object with at least N properties"),
  maxProperties: counted(members, most, "an object with at most N properties"),
  pattern: (check, pattern, at) =>
    typeof pattern !== "string" || typeof at.value !== "string" || check.matches(pattern, at.value)
      ? none
      : expected(at, `a text that matches ${pattern}`),
  uniqueItems: (check, unique, at) =>
    unique !== true || !Array.isArray(at.value) || new Set(at.value.map((item) => check.text(item))).size === at.value.length
      ? none
      : expected(at, "a list in which nothing comes twice"),
  prefixItems: (check, schemas, at) => (Array.isArray(schemas) ? eachItem(check, at, (index) => schemas[index] ?? true) : none),
  items: (check, schema, at) => {
    const { prefixItems, additionalItems = true } = at.schema;
    if (Array.isArray(schema)) return eachItem(check, at, (index) => schema[index] ?? additionalItems);
    const first = Array.isArray(prefixItems) ? prefixItems.length : 0;
    return eachItem(check, at, (index) => (index < first ? true : schema));
  },
  contains: (check, schema, at) =>
    !Array.isArray(at.value) || at.value.some((item) => check.fits(schema, { ...at, value: item }))
      ? none
      : expected(at, "a list with an item of a certain kind"),
  required: (_check, names, at) => {
    if (!Array.isArray(names) || !isObject(at.value)) return none;
    const missing = names.find((name) => typeof name === "string" && !Object.hasOwn(at.value as JsonObject, name));
    return missing === undefined ? none : expected(at, `an object with ${JSON.stringify(missing)}`);
  },
  properties: (check, schemas, at) =>
    eachMember(check, at, (name) => (isObject(schemas) && Object.hasOwn(schemas, name) ? [schemas[name] as Json] : [])),
  patternProperties: (check, schemas, at) =>
    eachMember(check, at, (name) =>
      Object.entries(isObject(schemas) ? (schemas as JsonObject) : {}).flatMap(([pattern, schema]) =>
        check.matches(pattern, name) ? [schema] : [],
      ),
    ),
  additionalProperties: (check, schema, at) =>
    eachMember(check, at, (name) => {
      const { properties, patternProperties } = at.schema;
      if (isObject(properties) && Object.hasOwn(properties, name)) return [];
      const patterns = isObject(patternProperties) ? Object.keys(patternProperties) : [];
      return patterns.some((pattern) => check.matches(pattern, name)) ? [] : [schema];
    }),
  propertyNames: (check, schema, at) =>
    !isObject(at.value) || Object.keys(at.value).every((name) => check.fits(schema, { ...at, value: name }))
      ? none
      : expected(at, "an object with other names of properties"),
  allOf: (check, schemas, at) =>
    Array.isArray(schemas) ? schemas.flatMap((schema) => check.of(schema, at.value, at.path, at.depth)) : none,
  anyOf: (check, schemas, at) =>
    !Array.isArray(schemas) || schemas.some((schema) => check.fits(schema, at)) ? none : expected(at, "one of several kinds of values"),
  oneOf: (check, schemas, at) =>
    !Array.isArray(schemas) || schemas.filter((schema) => check.fits(schema, at)).length === 1
      ? none
      : expected(at, "exactly one of several kinds of values"),
  not: (check, schema, at) => (check.fits(schema, at) ? expected(at, "another kind of value") : none),
  if: (check, condition, at) => {
    const taken = check.fits(condition, at) ? at.schema.then : at.schema.else;
    return taken === undefined ? none : check.of(taken, at.value, at.path, at.depth);
  },
};

function eachItem(check: Check, { value, path, depth }: At, schemaOf: (index: number) => Json): Violation[] {
  return Array.isArray(value) ? value.flatMap((item, index) => check.of(schemaOf(index), item, [...path, index], depth)) : none;
}

function eachMember(check: Check, { value, path, depth }: At, schemasOf: (name: string) => Json[]): Violation[] {
  if (!isObject(value)) return none;
  return Object.keys(value).flatMap((name) => {
    check.spend(1);
    return schemasOf(name).flatMap((schema) => check.of(schema, value[name] as Json, [...path, name], depth));
  });
}

function codePoints(text: string): number {
  let count = 0;
  for (const _char of text) count++;
  return count;
}

function typeName(value: Json): string {
  return Object.keys(types).find((name) => types[name]?.(value)) ?? "nothing";
}
