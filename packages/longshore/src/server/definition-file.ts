// A definition file in any of the formats: a map with `jobs` is workflow-graph's, one with `steps` or `output` a flow of Stepflow.

import { type Place, readFile, type Warning } from "../file-place.ts";
import { parseFlow } from "../protocols/stepflow/dialect/file.ts";
import { dialectName as stepflow } from "../protocols/stepflow/dialect/source.ts";
import { parseGraph } from "../protocols/workflow-graph/dialect/file.ts";
import { dialectName as workflowGraph } from "../protocols/workflow-graph/dialect/source.ts";

export interface DefinitionFile {
  readonly name: string;
  readonly dialect: string;
  readonly source: string;
  readonly warnings: readonly Warning[];
}

/** `file` is its name, which decides what the definition is called. Throws LONGSHORE_BAD_DEFINITION with line and column. */
export function parseDefinition(text: string, file: string): DefinitionFile {
  const read = readFile(text, { json: file.endsWith(".json"), code: "LONGSHORE_BAD_DEFINITION" });
  if (isFlow(read.root)) return { ...parseFlow(read, file), dialect: stepflow };
  const { id, source, warnings } = parseGraph(read, file);
  return { name: id, dialect: workflowGraph, source, warnings };
}

function isFlow(root: Place): boolean {
  const keys = root.entries().map(({ key }) => key);
  return !keys.includes("jobs") && (keys.includes("steps") || keys.includes("output"));
}
