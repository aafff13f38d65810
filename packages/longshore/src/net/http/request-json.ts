// The body of a request as JSON. Routes use this instead of JSON.parse: a large body was parsed in slices before.

import { deeperThan } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import { findJsonFault, type JsonFault } from "../../core/json/json-position.ts";
import type { HttpRequest } from "./http.ts";

/** A body as text, with its value if that was parsed already. */
export type JsonBody = Pick<HttpRequest, "text" | "parsed">;

/** Throws like JSON.parse. A route reads its body once and owns the value. */
export function jsonOf({ text, parsed }: JsonBody): unknown {
  if (parsed === undefined) return parseExact(text);
  if (parsed.fault !== undefined) throw new SyntaxError(parsed.fault.message);
  return parsed.value;
}

/**
 * The mistake of a body that `jsonOf` refused. For a large body the mistake is known already. A smaller one is scanned a second time, which
 * happens only for invalid bodies.
 */
export function faultOf({ text, parsed }: JsonBody): JsonFault | null {
  return parsed?.fault ?? findJsonFault(text);
}

/** Whether a body nests deeper than the limit. A body that was parsed in slices does not. */
export function isTooDeep({ text, parsed }: JsonBody): boolean {
  return parsed === undefined && deeperThan(text);
}
