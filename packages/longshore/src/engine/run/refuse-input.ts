// Refuses the input of a start that does not fit the schema of the workflow, before a run exists.

import type { Json, JsonObject } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { badWorkflowInput } from "../../core/schema/schema.ts";
import { provenViolations } from "../../core/schema/violations.ts";
import type { NewRun } from "./store.ts";

export function refuseUnfit({ workflow, input }: Pick<NewRun, "workflow" | "input">, schema: JsonSchema): void {
  const violations = provenViolations(schema as JsonObject, parseExact(input) as Json);
  if (violations.length > 0) throw badWorkflowInput(workflow, violations);
}
