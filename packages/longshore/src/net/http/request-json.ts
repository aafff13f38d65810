// The body of a request as JSON. Routes read it here and not with JSON.parse: a large body was read in slices while others had their turn.

import { deeperThan } from "../../core/json/json.ts";
import { parseExact } from "../../core/json/json-exact.ts";
import { findJsonFault, type JsonFault } from "../../core/json/json-position.ts";
import type { HttpRequest } from "./http.ts";

/** A body as text, with its value where that is known already. */
export type JsonBody = Pick<HttpRequest, "text" | "parsed">;

/** Throws as JSON.parse does. A route reads its body once: the value belongs to it. */
export function jsonOf({ text, parsed }: JsonBody): unknown {
  if (parsed === undefined) return parseExact(text);
  if (parsed.fault !== undefined) throw new SyntaxError(parsed.fault.message);
  return parsed.value;
}

/** What is wrong with a body that `jsonOf` refused. Worth a second look, which only broken bodies pay for; large ones had it already. */
export function faultOf({ text, parsed }: JsonBody): JsonFault | null {
  return parsed?.fault ?? findJsonFault(text);
}

/** Whether a body nests deeper than any JSON that is read. One that was read in slices does not. */
export function isTooDeep({ text, parsed }: JsonBody): boolean {
  return parsed === undefined && deeperThan(text);
}
