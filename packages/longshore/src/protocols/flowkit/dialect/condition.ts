// A node that runs only if the run's variables match: `"when": {"var": "routing.sla", "equals": "gold"}`. Without `equals` the variable
// must exist and be neither false nor null.

import { isDeepStrictEqual } from "node:util";
import { isObject, type Json, type JsonObject } from "../../../core/json/json.ts";
import type { Fields } from "./fields.ts";

export interface Condition {
  readonly var: string;
  readonly equals?: Json;
}

const pathCharsMax = 512;

export function readCondition(fields: Fields): Condition {
  const path = fields.text("var", { charsMax: pathCharsMax });
  const equals = fields.value("equals");
  return { var: path, ...(equals === null ? {} : { equals }) };
}

export function holds(condition: Condition, vars: JsonObject): boolean {
  let here: Json | undefined = vars;
  for (const segment of condition.var.split(".")) {
    here = isObject(here) && Object.hasOwn(here, segment) ? (here as JsonObject)[segment] : undefined;
  }
  if (condition.equals !== undefined) return isDeepStrictEqual(here, condition.equals);
  return here !== undefined && here !== null && here !== false;
}
