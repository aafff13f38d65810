// Finds patterns in a JSON Schema that are not supported: linear-pattern.ts has no lookaround and no backreferences.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import type { JsonPath } from "../../../core/json/json-position.ts";
import { linearPattern, PatternError } from "../../../core/pattern/linear-pattern.ts";
import { defsOf, type SchemaPlace } from "../../../core/schema/violations.ts";

export interface UnusablePattern {
  /** The path in the schema. Inside a definition that a `$ref` names, it begins with `$defs` and the name of the definition. */
  readonly path: JsonPath;
  readonly message: string;
}

/** Maximum number of patterns in one schema. Compiling each takes up to 0.1 ms whenever a run starts. */
const patternsMax = 100;

/** The values of these keywords are data, not schemas. */
const data = new Set(["default", "const", "enum", "examples"]);
/** The values of these keywords have a schema under each name. A name may be any text, also that of a keyword. */
const named = new Set(["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"]);

/** The first unsupported pattern of a schema, or of a schema that it refers to; null when there is none. */
export function unusablePattern(place: SchemaPlace): UnusablePattern | null {
  const defs = defsOf(place);
  const open: { schema: Json; path: JsonPath; isNamed: boolean }[] = [{ schema: place.schema, path: [], isNamed: false }];
  const seen = new Set<Json>();
  let patterns = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { schema, path, isNamed } = next;
    if (typeof schema !== "object" || schema === null || seen.has(schema)) continue;
    seen.add(schema);
    if (!(isNamed || Array.isArray(schema))) {
      for (const { source, at } of patternsIn(schema, path)) {
        if (++patterns > patternsMax) return { path: at, message: `the schema has more than ${patternsMax} patterns` };
        const message = whyUnusable(source);
        if (message !== null) return { path: at, message };
      }
      const name = typeof schema.$ref === "string" ? schema.$ref.split("/").at(-1) : undefined;
      if (name !== undefined && Object.hasOwn(defs, name)) open.push({ schema: defs[name] as Json, path: ["$defs", name], isNamed: false });
    }
    for (const [key, inner] of Object.entries(schema)) {
      if (!isNamed && data.has(key)) continue;
      open.push({ schema: inner, path: [...path, Array.isArray(schema) ? Number(key) : key], isNamed: !isNamed && named.has(key) });
    }
  }
  return null;
}

function patternsIn({ pattern, patternProperties }: JsonObject, path: JsonPath): { source: string; at: JsonPath }[] {
  const own = typeof pattern === "string" ? [{ source: pattern, at: [...path, "pattern"] }] : [];
  const named = isObject(patternProperties) ? Object.keys(patternProperties) : [];
  return [...own, ...named.map((source) => ({ source, at: [...path, "patternProperties", source] }))];
}

function whyUnusable(source: string): string | null {
  try {
    linearPattern(source, { javascript: true });
    return null;
  } catch (error) {
    if (error instanceof PatternError) return error.message;
    throw error;
  }
}
