// Refuses the input of a start, before a run exists. It does not fit the schema of the workflow, or the run with this key has another
// input.

import { LongshoreError } from "../../core/errors.ts";
import type { Json, JsonObject } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import type { JsonSchema } from "../../core/schema/json-schema.ts";
import { badWorkflowInput } from "../../core/schema/schema.ts";
import { provenViolations } from "../../core/schema/violations.ts";
import { shown } from "../../core/text.ts";
import type { Run } from "./run.ts";
import type { NewRun } from "./store.ts";

export function refuseUnfit({ workflow, input }: Pick<NewRun, "workflow" | "input">, schema: JsonSchema): void {
  const violations = provenViolations(schema as JsonObject, parseExact(input) as Json);
  if (violations.length > 0) throw badWorkflowInput(workflow, violations);
}

export function keyTaken(key: string, { id, workflow }: Run): LongshoreError {
  return new LongshoreError(
    "LONGSHORE_CONFLICT",
    `The key ${shown(key)} belongs to run ${id} of workflow ${workflow}, which has another input: use another key for another input.`,
    { detail: { field: "key", expected: "a new key, or the input of that run", run: id } },
  );
}
