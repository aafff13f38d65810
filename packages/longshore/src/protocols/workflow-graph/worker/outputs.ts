// A handler's result as the flat map of texts that this protocol carries.

import { isObject, type Json } from "../../../core/json/json.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import type { Outputs } from "../wire/shapes.ts";

/** The key of a result that is not an object. */
const resultKey = "result";

/** Texts stay unchanged, other values become JSON. No result (null) gives no outputs; a single value is stored under `result`. */
export function encodeOutputs(output: Json): Outputs {
  if (output === null) return {};
  if (!isObject(output)) return { [resultKey]: encode(output) };
  // A null prototype, so that an output named `__proto__` is an output like any other.
  const outputs: Outputs = Object.create(null);
  for (const [key, value] of Object.entries(output)) outputs[key] = encode(value as Json);
  return outputs;
}

/** True for a value that the map of texts represents without loss. */
export function isTexts(output: Json): boolean {
  return isObject(output) && Object.values(output).every((value) => typeof value === "string");
}

function encode(value: Json): string {
  return typeof value === "string" ? value : writeExact(value);
}
