// Checks texts of definitions without storing them, for editors that show problems while a person types.

import { LongshoreError } from "../../../core/errors.ts";
import type { Warning } from "../../../core/file-place.ts";
import type { Definition } from "../../../engine/run/dialect.ts";
import type { Plan } from "../../../engine/run/plan.ts";
import type { HttpRequest } from "../../../net/http/http.ts";
import type { DefinitionFile, ReadDefinition } from "../../server-half.ts";
import { definitionIn } from "./definitions.ts";
import { differenceOf } from "./workflow-diff.ts";
import type { WorkflowDeps } from "./workflows.ts";

export interface Problem {
  readonly level: "error" | "warning";
  readonly message: string;
  readonly field: string;
  readonly line: number | null;
  readonly column: number | null;
}

/** The warnings of the reader of definition files about a stored definition. `text` is its source, read as a file. */
export async function problemsIn(
  { readDefinition }: { readonly readDefinition: ReadDefinition },
  { name, dialect }: Pick<Definition, "name" | "dialect">,
  text: string,
): Promise<Problem[]> {
  try {
    const read = await readDefinition({ text, file: `${name}.json` });
    return read.dialect === dialect ? read.warnings.map(warningBody) : [];
  } catch (error) {
    // A program may have made a definition that does not have the form of a definition file. That is no problem to show.
    if (isRefusal(error)) return [];
    throw error;
  }
}

export async function checkDefinition(deps: WorkflowDeps, request: HttpRequest) {
  let file: DefinitionFile | undefined;
  try {
    file = await definitionIn(deps, request, undefined);
    const plan = await deps.runs.check(file.dialect, file.source);
    return { ...(await comparison(deps, file, plan)), name: file.name, dialect: file.dialect, problems: file.warnings.map(warningBody) };
  } catch (error) {
    if (!isRefusal(error)) throw error;
    const problems = [errorBody(error), ...(file?.warnings ?? []).map(warningBody)];
    return { name: file?.name ?? null, dialect: file?.dialect ?? null, isNew: true, problems, steps: null, lines: null };
  }
}

async function comparison({ reader, plan: planOf, slices }: WorkflowDeps, { name, dialect, source }: DefinitionFile, plan: Plan) {
  const newest = await reader.definition(name);
  if (newest === undefined) return { isNew: true, steps: null, lines: null };
  const isNew = newest.dialect !== dialect || newest.source !== source;
  return { isNew, ...(await differenceOf(slices, { plan: planOf(newest), source: newest.source }, { plan, source })) };
}

function isRefusal(error: unknown): error is LongshoreError {
  return error instanceof LongshoreError && (error.code === "LONGSHORE_BAD_DEFINITION" || error.code === "LONGSHORE_BAD_INPUT");
}

function warningBody({ message, field, line, column }: Warning): Problem {
  return { level: "warning", message, field, line, column };
}

function errorBody({ message, detail }: LongshoreError): Problem {
  const { field = "", line = null, column = null } = detail as { field?: string; line?: number; column?: number };
  return { level: "error", message, field, line, column };
}
