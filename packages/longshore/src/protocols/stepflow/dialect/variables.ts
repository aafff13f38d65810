// The variables of a flow: their schema, their initial values, and which are secret.

import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import { shown } from "../../../core/text.ts";
import type { Schemas } from "./flow.ts";
import { resolve, typesAt } from "./schema-walk.ts";

export interface Variable {
  readonly name: string;
  readonly description: string | null;
  readonly required: boolean;
  /** Undefined when the schema has no default. */
  readonly default: Json | undefined;
  readonly schema: Json;
  /** The environment variable that provides the value when the request does not. */
  readonly envVar: string | null;
  readonly secret: boolean;
}

/** Shown instead of a secret. */
const redacted = "[REDACTED]";

/** Null when the flow does not declare its variables. */
export function declaredVariables({ variables, defs }: Pick<Schemas, "variables" | "defs">): ReadonlyMap<string, Variable> | null {
  const schema = resolve({ schema: variables, defs });
  if (schema === null) return null;
  const properties = isObject(schema.properties) ? (schema.properties as JsonObject) : {};
  const required = Array.isArray(schema.required) ? schema.required : [];
  return new Map(
    Object.entries(properties).map(([name, property]) => {
      const said = isObject(property) ? (property as JsonObject) : {};
      const variable: Variable = {
        name,
        description: typeof said.description === "string" ? said.description : null,
        required: required.includes(name),
        default: said.default,
        schema: property,
        envVar: typeof said.env_var === "string" ? said.env_var : null,
        secret: said.is_secret === true,
      };
      return [name, variable];
    }),
  );
}

/** The value of a variable that was not set; undefined when it is required. */
export function standIn(variable: Variable, defs: JsonObject): Json | undefined {
  if (variable.default !== undefined) return variable.default;
  if (variable.required) return undefined;
  const [type] = typesAt({ schema: variable.schema, defs }) ?? [];
  return type === "string" ? "" : type === "integer" || type === "number" ? 0 : type === "boolean" ? false : null;
}

/** A value for messages: secrets are hidden, long texts are cut. */
export function shownValue({ secret }: Variable, value: Json): string {
  return secret ? redacted : shown(value);
}
