// Flows in YAML or JSON files. A fatal finding refuses the file, every other finding is a warning. Each has a line and column.

import { fileId, type ReadFile, type Warning } from "../../../core/file-place.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { diagnose } from "./diagnose.ts";
import { readFlow } from "./flow.ts";
import { encodeFlow, flowIdOf, nameOf } from "./source.ts";

export interface FlowFile {
  /** The file's name without folder and extension; without a file, the flow's own name. */
  readonly name: string;
  readonly source: string;
  readonly warnings: readonly Warning[];
}

/** Throws LONGSHORE_BAD_DEFINITION with field, expected, line and column. */
export function parseFlow({ root, warnings }: ReadFile, file?: string): FlowFile {
  const document = root.json();
  const flow = readFlow(document, (path, message, expected) => root.find(path).refuse(message, expected));
  for (const { level, message, at, expected, experimental } of diagnose(flow)) {
    if (level === "fatal") throw root.find(at).refuse(message, expected ?? "a flow that can be run");
    if (!experimental) root.find(at).warn(message);
  }
  const source = encodeFlow(document as JsonObject);
  return { name: fileId(file) ?? nameOf(flow, flowIdOf(source)), source, warnings };
}
