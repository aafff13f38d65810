import { isScalar, type Json } from "./json/json.ts";

/** About how many characters `value` takes as JSON; stops counting above `max`. By a list of its own, so that depth is no matter. */
export function textSize(value: Json, max: number): number {
  let size = 0;
  const open: Json[] = [value];
  for (let part = open.pop(); part !== undefined && size <= max; part = open.pop()) {
    if (typeof part === "string") size += part.length + 2;
    else if (isScalar(part)) size += 5;
    else if (Array.isArray(part)) {
      size += part.length + 2;
      for (const item of part) open.push(item);
    } else {
      size += 2;
      for (const key in part) {
        size += key.length + 4;
        open.push(part[key] as Json);
      }
    }
  }
  return size;
}
