// The variables of a flow: what its schema says of them, what a run begins with, and what may not be shown.

import { isObject, type Json, type JsonObject } from "../../../json.ts";
import { shown } from "../../../text.ts";
import type { Schemas } from "./flow.ts";
import { resolve, typesAt } from "./schema-walk.ts";

export interface Variable {
  readonly name: string;
  readonly description: string | null;
  readonly required: boolean;
  /** Undefined when the schema has none. */
  readonly default: Json | undefined;
  readonly schema: Json;
  /** From which variable of the environment it is taken when nobody gives it. */
  readonly envVar: string | null;
  readonly secret: boolean;
}

/** What stands where a secret would. */
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

/** What a variable is when nobody gave it; undefined when somebody must. */
export function standIn(variable: Variable, defs: JsonObject): Json | undefined {
  if (variable.default !== undefined) return variable.default;
  if (variable.required) return undefined;
  const [type] = typesAt({ schema: variable.schema, defs }) ?? [];
  return type === "string" ? "" : type === "integer" || type === "number" ? 0 : type === "boolean" ? false : null;
}

/** A value as messages may have it: a secret is not told, and a long text is cut. */
export function shownValue({ secret }: Variable, value: Json): string {
  return secret ? redacted : shown(value);
}
