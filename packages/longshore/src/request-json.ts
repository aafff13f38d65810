// The body of a request as JSON. Routes read it here and not with JSON.parse: a large body was read in slices while others had their turn.

import type { HttpRequest } from "./http.ts";
import { parseExact } from "./json-exact.ts";

/** A body as text, with its value where that is known already. */
export type JsonBody = Pick<HttpRequest, "text" | "parsed">;

/** Throws as JSON.parse does. A route reads its body once: the value belongs to it. */
export function jsonOf({ text, parsed }: JsonBody): unknown {
  return parsed === undefined ? parseExact(text) : parsed.value;
}
