// The check of a definition that a worker reports with a child run: what the API checks when an operator defines the workflow, and that no event
// starts it. A worker could otherwise get the payloads of all later events, and start runs without a task that it holds.

import { LongshoreError } from "../../../core/errors.ts";
import { deeperThan, jsonDepthMax } from "../../../core/json/json.ts";
import { parseExact } from "../../../core/json/json-exact.ts";

/** Rejects with LONGSHORE_BAD_DEFINITION, which names the field. */
export async function checkReported(dialect: "code" | "function", name: string, source: string): Promise<void> {
  // Loaded at the first use: a server without a socket starts without the library for schemas.
  const { codeSource, functionSource } = await import("./code-source.ts");
  const schema = dialect === "code" ? codeSource : functionSource;
  if (deeperThan(source)) throw bad(name, "", `is nested deeper than ${jsonDepthMax} levels`);
  const { data, error } = schema.safeParse(jsonOf(name, source));
  const [issue] = error?.issues ?? [];
  if (issue !== undefined) throw bad(name, issue.path.join("."), issue.message);
  if (data?.events !== undefined) throw bad(name, "events", "the events that start a workflow are defined with an operator token");
  if (data?.name !== name) throw bad(name, "name", `is ${JSON.stringify(data?.name)}, expected ${JSON.stringify(name)}`);
}

function jsonOf(name: string, source: string): unknown {
  try {
    return parseExact(source);
  } catch (error) {
    throw bad(name, "", `is not JSON: ${(error as Error).message}`);
  }
}

function bad(name: string, path: string, fault: string): LongshoreError {
  const field = path === "" ? "source" : `source.${path}`;
  return new LongshoreError("LONGSHORE_BAD_DEFINITION", `Workflow ${name}, which came from a worker: ${field}: ${fault}.`, {
    detail: { field },
  });
}
