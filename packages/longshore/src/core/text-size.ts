import { isScalar, type Json } from "./json/json.ts";

/** How large a value is as JSON: what it takes to store it, and to read and write it. */
export interface ValueSize {
  readonly chars: number;
  /** Names of members count too. */
  readonly values: number;
}

/** About how large `value` is; stops counting above either of `max`. By a list of its own, so that depth is no matter. */
export function sizeOf(value: Json, max: ValueSize): ValueSize {
  let chars = 0;
  let values = 0;
  const open: Json[] = [value];
  for (let part = open.pop(); part !== undefined && chars <= max.chars && values <= max.values; part = open.pop()) {
    values++;
    if (typeof part === "string") chars += part.length + 2;
    else if (isScalar(part)) chars += 5;
    else if (Array.isArray(part)) {
      chars += part.length + 2;
      for (const item of part) open.push(item);
    } else {
      chars += 2;
      for (const key in part) {
        values++;
        chars += key.length + 4;
        open.push(part[key] as Json);
      }
    }
  }
  return { chars, values };
}

/** About how many characters `value` takes as JSON; stops counting above `max`. */
export function textSize(value: Json, max: number): number {
  return sizeOf(value, { chars: max, values: Number.POSITIVE_INFINITY }).chars;
}
