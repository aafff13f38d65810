// Conductor's workflows for starts and definitions that come from elsewhere: from files, from our own API, from a program.

import { LongshoreError } from "../../../core/errors.ts";
import { isObject, type JsonObject } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";
import { parseInSlices } from "../../../core/json/json-slices.ts";
import { inTurns } from "../../../core/slices/slice-work.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { NamedWorkflows } from "../../../engine/run/runs.ts";
import type { WorkflowDef } from "../dialect/model.ts";
import type { Registry } from "./registry.ts";
import { Refused } from "./replies.ts";
import { runOf } from "./start.ts";

export function namedWorkflows(registry: Registry): NamedWorkflows {
  return {
    /** Replaces an earlier text of the same version, as a registration with `overwrite` does. */
    async define(source) {
      const workflow = (await inTurns(parseInSlices(source))) as unknown as WorkflowDef;
      await asOurs(() => registry.keepWorkflow(workflow, true));
      return (await asOurs(() => registry.startable(workflow.name, workflow.version))) as Definition;
    },
    async start(name, input) {
      const definition = await asOurs(() => registry.startable(name));
      if (definition === undefined) return undefined;
      const source = (await inTurns(parseInSlices(definition.source))) as unknown as WorkflowDef;
      const run = await asOurs(async () => runOf(definition, source, { input: objectOf(name, input), priority: 0 }));
      return { definitionId: run.definitionId, input: run.input, settings: run.settings, variables: run.variables };
    },
  };
}

/** Without an input a run has an empty one. */
function objectOf(name: string, input: string): JsonObject {
  const value = parseExact(input);
  if (value === null) return {};
  if (isObject(value)) return value as JsonObject;
  throw new LongshoreError("LONGSHORE_BAD_INPUT", `The input of ${name} is not an object, as a Conductor workflow requires.`, {
    detail: { field: "input", expected: "an object" },
  });
}

/** Refusals in Conductor's form become errors that every caller understands. */
async function asOurs<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new LongshoreError("LONGSHORE_LIMIT", error.message, { cause: error });
  }
}
