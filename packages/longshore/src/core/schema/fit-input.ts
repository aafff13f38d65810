// Adapts an input to its schema when the sender cannot. If the source of a field has no value, some orchestrators leave the field out, and
// others write null. A schema distinguishes the two.
//
//   - A required field that is missing and may be null becomes null.
//   - An optional field that is null and must not be null is removed, so that its default applies.
//
// Everything else stays unchanged, and the schema decides.

import { isObject } from "../json/json.ts";
import { isNullable, type JsonSchema } from "./json-schema.ts";

/** Returns `value` itself when nothing has to change. `schema` is JSON Schema as a schema library writes it. */
export function fitInput(value: unknown, schema: JsonSchema | undefined): unknown {
  return schema === undefined ? value : fit(value, schema, schema);
}

function fit(value: unknown, schema: unknown, root: JsonSchema): unknown {
  const form = formOf(schema, root);
  if (form === undefined) return value;
  if (Array.isArray(value)) return fitList(value, form, root);
  if (isObject(value) && isObject(form.properties)) return fitFields(value, form, root);
  return value;
}

function fitList(value: unknown[], form: JsonSchema, root: JsonSchema): unknown[] {
  const { items } = form;
  if (!isObject(items)) return value;
  const fitted = value.map((each) => fit(each, items, root));
  return fitted.some((each, at) => each !== value[at]) ? fitted : value;
}

function fitFields(value: { [name: string]: unknown }, form: JsonSchema, root: JsonSchema): unknown {
  const required = Array.isArray(form.required) ? form.required : [];
  const fitted = { ...value };
  let changed = false;
  for (const [name, field] of Object.entries(form.properties as JsonSchema)) {
    const given = Object.hasOwn(value, name) ? value[name] : undefined;
    const must = required.includes(name);
    if (given === undefined) {
      if (!must || !takesNull(field, root)) continue;
      fitted[name] = null;
    } else if (given === null) {
      if (must || takesNull(field, root)) continue;
      delete fitted[name];
    } else {
      fitted[name] = fit(given, field, root);
      if (fitted[name] === given) continue;
    }
    changed = true;
  }
  return changed ? fitted : value;
}

/** A field without a type accepts every value, including null. */
function takesNull(field: unknown, root: JsonSchema): boolean {
  const form = isObject(field) ? (resolved(field, root) ?? field) : {};
  return isNullable(form) || !["type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"].some((keyword) => keyword in form);
}

/** The schema that describes fields and items: behind a reference, or the only alternative besides null. */
function formOf(schema: unknown, root: JsonSchema): JsonSchema | undefined {
  const form = isObject(schema) ? resolved(schema, root) : undefined;
  const choices = form?.anyOf ?? form?.oneOf;
  if (!Array.isArray(choices)) return form;
  const left = choices.filter((choice) => isObject(choice) && choice.type !== "null");
  return left.length === 1 ? resolved(left[0], root) : undefined;
}

/** Follows one reference; libraries do not chain them. */
function resolved(schema: JsonSchema, root: JsonSchema): JsonSchema | undefined {
  if (typeof schema.$ref !== "string") return schema;
  if (schema.$ref === "#") return root;
  const [, group, name] = /^#\/(definitions|\$defs)\/([^/]+)$/.exec(schema.$ref) ?? [];
  const all = group === undefined ? undefined : root[group];
  const target = isObject(all) && name !== undefined ? all[name] : undefined;
  return isObject(target) ? target : undefined;
}
