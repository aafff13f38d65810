// Values held against JSON Schemas.

import { z } from "zod";
import { isObject, type Json } from "../../json.ts";
import type { JsonPath } from "../../json-position.ts";
import { defsOf, type SchemaPlace } from "./schema-walk.ts";

/** What is wrong with a value, each with where; empty when nothing is, or the schema cannot be used. */
export function violations(place: SchemaPlace, value: Json): { readonly path: JsonPath; readonly message: string }[] {
  if (!isObject(place.schema)) return [];
  const judge = judgeOf({ ...place.schema, $defs: defsOf(place) });
  const result = judge?.safeParse(value);
  if (result === undefined || result.success) return [];
  return result.error.issues.map(({ path, message }) => ({
    path: path.map((part) => (typeof part === "number" ? part : String(part))),
    message,
  }));
}

function judgeOf(schema: { [keyword: string]: unknown }): z.ZodType | null {
  try {
    return z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0]);
  } catch {
    // A schema that is none, or says something that is not understood: nothing can be said against a value.
    return null;
  }
}
