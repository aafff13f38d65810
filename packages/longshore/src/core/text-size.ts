import { isScalar, type Json } from "./json/json.ts";

/** The size of a value as JSON: what it costs to store, read and write it. */
export interface ValueSize {
  readonly chars: number;
  /** The number of values; names of members count too. */
  readonly values: number;
}

/** `depth` is the nesting of lists and objects: 0 for a scalar, 1 for an empty list. It is too low when counting stopped early. */
export type CountedSize = ValueSize & { readonly depth: number };

/**
 * The approximate size of `value`; stops counting above either limit of `max`. Iterative, so that deep values cannot overflow the stack.
 */
export function sizeOf(value: Json, max: ValueSize): CountedSize {
  let chars = 0;
  let values = 0;
  let depth = 0;
  let next: (Json[] | { [key: string]: Json })[] = [];
  const count = (inner: Json): void => {
    values++;
    if (typeof inner === "string") chars += inner.length + 2;
    else if (isScalar(inner)) chars += 5;
    else next.push(inner as Json[] | { [key: string]: Json });
  };
  count(value);
  while (next.length > 0) {
    const level = next;
    next = [];
    depth++;
    for (const inner of level) {
      if (chars > max.chars || values > max.values) return { chars, values, depth };
      chars += 2;
      if (Array.isArray(inner)) {
        chars += inner.length;
        for (const item of inner) count(item);
      } else {
        for (const key in inner) {
          values++;
          chars += key.length + 4;
          count(inner[key] as Json);
        }
      }
    }
  }
  return { chars, values, depth };
}

/** The approximate number of characters of `value` as JSON; stops counting above `max`. */
export function textSize(value: Json, max: number): number {
  return sizeOf(value, { chars: max, values: Number.POSITIVE_INFINITY }).chars;
}
