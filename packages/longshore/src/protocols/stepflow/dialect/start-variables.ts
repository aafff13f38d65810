// The initial variables of a run: the given values, else those of the environment, else the defaults of the flow's schema.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type Json, type JsonObject, setOwn } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { type SchemaPlace, violations } from "../../../core/schema/violations.ts";
import type { Schemas } from "./flow.ts";
import { unusablePattern } from "./schema-patterns.ts";
import { resolve, typesAt } from "./schema-walk.ts";
import { declaredVariables, shownValue, standIn, type Variable } from "./variables.ts";

export interface VariableSources {
  /** The variables in the start request. */
  readonly given: JsonObject;
  /** Reads an environment variable. */
  environment?(name: string): string | undefined;
  /** Also look up `STEPFLOW_VAR_<NAME>`. */
  readonly prefixed?: boolean;
}

/** Throws LONGSHORE_BAD_INPUT that names the variable when a required one is missing or a value does not fit its schema. */
export function resolveVariables(schemas: Pick<Schemas, "variables" | "defs">, sources: VariableSources): JsonObject {
  const declared = declaredVariables(schemas);
  if (declared === null) return { ...sources.given };
  refuseUnusable(schemas);
  const variables: JsonObject = { ...sources.given };
  refuseUndeclared(schemas, declared, sources.given);
  for (const variable of declared.values()) {
    const { name, schema } = variable;
    const value = Object.hasOwn(sources.given, name) ? sources.given[name] : fromEnvironment(variable, sources, schemas.defs);
    const resolved = value === undefined ? standIn(variable, schemas.defs) : value;
    if (resolved === undefined)
      throw bad(name, `The variable ${JSON.stringify(name)} is required and was not given${elsewhere(variable)}.`, expectedOf(variable));
    if (value !== undefined) check(variable, { schema, defs: schemas.defs }, value);
    setOwn(variables, name, resolved);
  }
  return variables;
}

/** A flow may have been stored without diagnostics. */
function refuseUnusable({ variables, defs }: Pick<Schemas, "variables" | "defs">): void {
  const found = unusablePattern({ schema: variables, defs });
  if (found === null) return;
  const message = `A pattern in the schema of the flow's variables cannot be used: ${found.message}.`;
  const expected = "a pattern without lookahead, lookbehind and backreferences";
  throw new LongshoreError("LONGSHORE_BAD_DEFINITION", message, {
    detail: { field: `schemas.variables.${found.path.join(".")}`, expected },
  });
}

function elsewhere({ envVar }: Variable): string {
  if (envVar === null) return "";
  return `, and the environment has no ${envVar} for flows: set it, and name it with --stepflow-env at the start of the server`;
}

function fromEnvironment(variable: Variable, { environment, prefixed }: VariableSources, defs: JsonObject): Json | undefined {
  const names = [
    ...(variable.envVar === null ? [] : [variable.envVar]),
    ...(prefixed ? [`STEPFLOW_VAR_${variable.name.toUpperCase()}`] : []),
  ];
  const text = names.map((name) => environment?.(name)).find((found) => found !== undefined);
  if (text === undefined) return undefined;
  const types = typesAt({ schema: variable.schema, defs });
  if (types === null || types.includes("string")) return text;
  try {
    return parseExact(text) as Json;
  } catch {
    throw bad(variable.name, `The environment's value for the variable ${JSON.stringify(variable.name)} is not JSON.`, types.join(" or "));
  }
}

/** Refuses undeclared variables only when the schema has `additionalProperties: false`. */
function refuseUndeclared(
  { variables, defs }: Pick<Schemas, "variables" | "defs">,
  declared: ReadonlyMap<string, Variable>,
  given: JsonObject,
): void {
  if (resolve({ schema: variables, defs })?.additionalProperties !== false) return;
  const unknown = Object.keys(given).find((name) => !declared.has(name));
  if (unknown !== undefined)
    throw bad(unknown, `The flow has no variable ${JSON.stringify(unknown)}.`, `one of ${[...declared.keys()].join(", ")}`);
}

function check(variable: Variable, place: SchemaPlace, value: Json): void {
  const [first] = violations(place, value);
  if (first === undefined) return;
  const where = first.path.length === 0 ? "" : ` at ${first.path.join(".")}`;
  const is = `The variable ${JSON.stringify(variable.name)} is ${shownValue(variable, value)}`;
  throw bad(variable.name, `${is}, which does not fit its schema${where}: ${first.message}.`, expectedOf(variable));
}

function expectedOf({ schema }: Variable): string {
  const type = isObject(schema) ? schema.type : undefined;
  const types = (Array.isArray(type) ? type : [type]).filter((one) => typeof one === "string");
  return types.length === 0 ? "a value" : `a value of type ${types.join(" or ")}`;
}

function bad(name: string, message: string, expected: string): LongshoreError {
  return new LongshoreError("LONGSHORE_BAD_INPUT", message, { detail: { field: `variables.${name}`, expected } });
}
