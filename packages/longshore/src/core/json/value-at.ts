import { isObject, type Json } from "./json.ts";

/** The value at a path of field names with dots between them; undefined where there is none. */
export function valueAt(value: Json, path: string): unknown {
  let at: unknown = value;
  for (const name of path.split(".")) {
    if (!isObject(at) || !Object.hasOwn(at, name)) return undefined;
    at = at[name];
  }
  return at;
}
