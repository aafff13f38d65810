// The name of a failure on the wire, and whether a retry is useful. A mistake in the configuration or the input is permanent. Everything
// else is transient.

import { isTerminal, toError } from "../../../core/errors.ts";
import { isObject } from "../../../core/json/json.ts";

/** The reason, and whether it is permanent. */
export type Classified = readonly [reason: string, permanent: boolean];

/**
 * Names of errors for invalid input: those of JavaScript for wrong types, ranges and syntax, and those of schema libraries. Compared by
 * name, because an error may come from another realm or another copy of a library.
 */
const badInputNames: ReadonlySet<string> = new Set([
  "TypeError",
  "RangeError",
  "SyntaxError",
  "ZodError",
  "$ZodError",
  "ValiError",
  "ValidationError",
  "SchemaError",
  "StandardSchemaError",
]);

export const reasons = {
  badInput: "bad_input",
  unexpected: "unexpected_error",
  badAdapter: "bad_input_adapter",
  badArgs: "bad_input_args",
  noHandler: "no_handler",
  upstreamFailed: "upstream_failed",
  timeout: "timeout",
  terminal: "terminal_error",
  badOutput: "bad_output",
  workerRestarted: "worker_restarted",
  storeUnavailable: "artifacts_unavailable",
  /** A batch that failed without a reason, as in the reference. */
  error: "error",
} as const;

/** The default classification of a handler's error. */
export function classifyError(thrown: unknown): Classified {
  const error = toError(thrown);
  const code = (error as { code?: unknown }).code;
  if (badInputNames.has(nameOf(thrown) ?? error.name) || code === "LONGSHORE_BAD_INPUT" || code === "LONGSHORE_BAD_CONFIG")
    return [reasons.badInput, true];
  if (isTerminal(error)) return [reasons.terminal, true];
  return [reasons.unexpected, false];
}

/** Some schema libraries throw objects that are not Errors but have a name. */
function nameOf(thrown: unknown): string | undefined {
  const name = isObject(thrown) ? (thrown as { name?: unknown }).name : undefined;
  return typeof name === "string" ? name : undefined;
}
