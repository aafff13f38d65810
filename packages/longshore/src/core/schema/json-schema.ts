// Converts a JSON Schema from any source to the one form that is published: draft-07, with nested types written out where they are used.
// Schema libraries, signatures and people write the same type in different ways. Registries and their readers get one form of it.
//
//   - `$schema` on top, `required` in every object that names its fields.
//   - A value that may be missing or null is `{ "type": [T, "null"], "nullable": true }` and never required. A field with a default may
//     be missing too, but is not nullable: null would not bring the default.
//   - `definitions` holds only types that contain themselves; every other reference is replaced by its type.
//   - `additionalProperties` of an object with named fields, also of a nested one, is the opposite of `strict`. Two exceptions: a schema for
//     additional fields stays, and members of `allOf` accept additional fields.

import { isObject } from "../json/json.ts";

/** A JSON Schema as data. */
export type JsonSchema = { [keyword: string]: unknown };

export const draft07 = "http://json-schema.org/draft-07/schema#";

/** A schema that names the same types many times grows fast when it is written out; no registry accepts one this large. */
const nodesMax = 10_000;

/** Keywords of later drafts that change what is accepted and have no counterpart in draft-07. */
const unsupported = ["$dynamicRef", "$recursiveRef", "dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "minContains"];

/** Keywords that organise a document. The published form has its own organisation. */
const organisation = new Set(["$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "~standard"]);

/** The published form of `raw`. Undefined when `raw` contains something that draft-07 cannot express: a wrong schema is worse than none. */
export function publishedSchema(raw: unknown, options: { readonly strict?: boolean } = {}): JsonSchema | undefined {
  if (!isObject(raw)) return undefined;
  try {
    return new Publication(raw, options.strict ?? false).write();
  } catch {
    // A library may hand over anything, even a property that throws or nesting that overflows the stack. A worker can start without a
    // schema.
    return undefined;
  }
}

class Unpublishable extends Error {}

class Publication {
  readonly #root: JsonSchema;
  #strict: boolean;
  /** Types that contain themselves, by name; filled while they are written. */
  readonly #definitions: JsonSchema = {};
  /** References that are being written out now. A reference that occurs again contains itself. */
  readonly #open: string[] = [];
  readonly #recursive = new Set<string>();
  /** The name by which the document refers to itself, when its top is only a reference to its body. */
  readonly #alias: unknown;
  #nodes = 0;

  constructor(root: JsonSchema, strict: boolean) {
    this.#root = root;
    this.#strict = strict;
    this.#alias = root.$ref;
  }

  write(): JsonSchema {
    this.#open.push("#");
    const body = this.#schema(typeof this.#alias === "string" ? this.#target(this.#alias) : this.#root);
    const definitions = Object.keys(this.#definitions).length === 0 ? {} : { definitions: this.#definitions };
    return { $schema: draft07, ...body, ...definitions };
  }

  #schema(raw: unknown): JsonSchema {
    if (++this.#nodes > nodesMax) throw new Unpublishable();
    // `true` accepts every value, like the empty schema.
    if (raw === true) return {};
    if (raw === false) return { not: {} };
    if (!isObject(raw) || unsupported.some((keyword) => keyword in raw)) throw new Unpublishable();
    if (typeof raw.$ref === "string") return this.#referenced(raw.$ref, raw);
    const schema = simplified(this.#keywords(raw));
    return isNullable(schema) ? nullable(withoutNull(schema)) : schema;
  }

  #keywords(raw: JsonSchema): JsonSchema {
    const schema: JsonSchema = {};
    for (const [keyword, value] of Object.entries(raw)) {
      if (organisation.has(keyword) || keyword === "nullable") continue;
      schema[keyword] = this.#keyword(keyword, value);
    }
    if (raw.nullable === true) schema.nullable = true;
    this.#tuple(raw, schema);
    if (isObject(raw.properties)) this.#fields(raw, schema);
    if (isObject(raw.dependentRequired)) {
      schema.dependencies = raw.dependentRequired;
      delete schema.dependentRequired;
    }
    return schema;
  }

  #keyword(keyword: string, value: unknown): unknown {
    switch (keyword) {
      case "anyOf":
      case "oneOf":
        return list(value).map((each) => this.#schema(each));
      case "allOf":
        return this.#together(list(value));
      case "items":
        return Array.isArray(value) ? value.map((each) => this.#schema(each)) : this.#schema(value);
      case "not":
      case "if":
      case "then":
      case "else":
      case "contains":
      case "additionalItems":
      case "propertyNames":
        return this.#schema(value);
      case "additionalProperties":
        return typeof value === "boolean" ? value : this.#schema(value);
      case "patternProperties":
        return this.#each(value);
      default:
        return value;
    }
  }

  /** Each member of an intersection accepts the fields of the others, so none of them can be strict. */
  #together(schemas: unknown[]): JsonSchema[] {
    const strict = this.#strict;
    this.#strict = false;
    const written = schemas.map((each) => this.#schema(each));
    this.#strict = strict;
    return written;
  }

  #each(value: unknown): JsonSchema {
    if (!isObject(value)) throw new Unpublishable();
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, this.#schema(each)]));
  }

  /** Later drafts call the items of a tuple `prefixItems`, and the rest `items`. */
  #tuple(raw: JsonSchema, schema: JsonSchema): void {
    if (raw.prefixItems === undefined) return;
    if (raw.items !== undefined) schema.additionalItems = schema.items;
    schema.items = list(raw.prefixItems).map((each) => this.#schema(each));
    delete schema.prefixItems;
  }

  #fields(raw: JsonSchema, schema: JsonSchema): void {
    const wanted = new Set(raw.required === undefined ? [] : list(raw.required));
    const required: string[] = [];
    const properties: JsonSchema = {};
    for (const [name, field] of Object.entries(raw.properties as JsonSchema)) {
      const written = this.#schema(field);
      const optional = !wanted.has(name) && !("default" in written);
      properties[name] = optional ? nullable(written) : written;
      if (wanted.has(name) && !("default" in written) && !isNullable(written)) required.push(name);
      // A default without a known value has no further effect.
      if (written.default === undefined) delete written.default;
    }
    schema.type ??= "object";
    schema.properties = properties;
    schema.required = required;
    // A schema for additional fields is kept, strict or not.
    const more = schema.additionalProperties;
    schema.additionalProperties = isObject(more) && Object.keys(more).length > 0 ? more : !this.#strict;
  }

  /** In later drafts, keywords next to a reference apply to the same value; draft-07 ignores them. */
  #referenced(named: string, raw: JsonSchema): JsonSchema {
    const { $ref: _, ...beside } = raw;
    const reference = named === this.#alias ? "#" : named;
    const target = this.#target(reference);
    if (this.#open.includes(reference) || this.#recursive.has(reference)) {
      this.#recursive.add(reference);
      return { $ref: reference === "#" ? "#" : `#/definitions/${nameOf(reference)}` };
    }
    this.#open.push(reference);
    const written = this.#schema(isObject(target) ? { ...target, ...beside } : target);
    this.#open.pop();
    if (!this.#recursive.has(reference)) return written;
    this.#definitions[nameOf(reference)] = written;
    return { $ref: `#/definitions/${nameOf(reference)}` };
  }

  #target(reference: string): unknown {
    if (reference === "#") return this.#root;
    if (!reference.startsWith("#/")) throw new Unpublishable();
    let at: unknown = this.#root;
    for (const segment of reference.slice(2).split("/")) {
      const key = decodeURIComponent(segment).replaceAll("~1", "/").replaceAll("~0", "~");
      if (!isObject(at) || !Object.hasOwn(at, key)) throw new Unpublishable();
      at = at[key];
    }
    return at;
  }
}

/** Characters that would need escaping in a reference are replaced. */
function nameOf(reference: string): string {
  return (reference.split("/").at(-1) ?? "").replaceAll(/[^\w.-]/g, "_");
}

function list(value: unknown): unknown[] {
  if (!Array.isArray(value)) throw new Unpublishable();
  return value;
}

/** Whether the schema accepts null explicitly. The empty schema accepts it too, but does not mention it. */
export function isNullable(schema: JsonSchema): boolean {
  if (schema.nullable === true || schema.type === "null") return true;
  if (schema.type !== undefined && ![schema.type].flat().includes("null")) return false;
  if (Array.isArray(schema.enum)) return schema.enum.includes(null);
  if (schema.const !== undefined) return schema.const === null;
  if (schema.type !== undefined) return true;
  const branches = schema.anyOf ?? schema.oneOf;
  return Array.isArray(branches) && branches.some((branch) => isObject(branch) && isNullable(branch));
}

/** The schema without its null, so that null can be written in one way. */
function withoutNull(schema: JsonSchema): JsonSchema {
  const { nullable: _, ...rest } = schema;
  if (Array.isArray(rest.type)) rest.type = single(rest.type.filter((type) => type !== "null"));
  if (Array.isArray(rest.enum)) rest.enum = rest.enum.filter((value) => value !== null);
  for (const choice of ["anyOf", "oneOf"] as const) {
    const branches = rest[choice];
    if (!Array.isArray(branches)) continue;
    const left = branches.filter((branch) => !isNullOnly(branch));
    rest[choice] = left.map((branch) => (isNullable(branch) ? withoutNull(branch) : branch));
  }
  return simplified(rest);
}

/** A choice or an intersection with one member becomes that member, unless both have keywords of the same kind. */
function simplified(schema: JsonSchema): JsonSchema {
  for (const choice of ["anyOf", "oneOf", "allOf"] as const) {
    const { [choice]: branches, ...beside } = schema;
    if (!Array.isArray(branches) || branches.length !== 1) continue;
    const only = branches[0] as JsonSchema;
    // Draft-07 reads nothing next to a reference.
    if ("$ref" in only ? Object.keys(beside).length === 0 : !Object.keys(beside).some((keyword) => keyword in only)) {
      return { ...only, ...beside };
    }
  }
  return schema;
}

function isNullOnly(branch: JsonSchema): boolean {
  return branch.type === "null" || branch.const === null;
}

function nullable(schema: JsonSchema): JsonSchema {
  const { type } = schema;
  if (isNullOnly(schema)) return { type: "null", nullable: true };
  // No keyword limits the value, so null is accepted already.
  if (Object.keys(schema).every((keyword) => ["title", "description", "default", "examples", "nullable"].includes(keyword))) return schema;
  if (isNullable(schema)) return schema.nullable === true ? schema : nullable(withoutNull(schema));
  const values = Array.isArray(schema.enum) ? { enum: [...schema.enum, null] } : {};
  if (type !== undefined && schema.const === undefined) return { ...schema, type: [type, "null"].flat(), ...values, nullable: true };
  if (Array.isArray(schema.enum)) return { ...schema, ...values, nullable: true };
  if (schema.const !== undefined) {
    const { const: only, type: _, ...rest } = schema;
    return { ...rest, enum: [only, null], nullable: true };
  }
  const choices = Array.isArray(schema.anyOf) && Object.keys(schema).length === 1 ? schema.anyOf : [schema];
  return { anyOf: [...choices, { type: "null" }], nullable: true };
}

function single(types: unknown[]): unknown {
  return types.length === 1 ? types[0] : types;
}
