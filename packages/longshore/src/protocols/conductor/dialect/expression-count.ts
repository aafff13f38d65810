import { isScalar, type Json } from "../../../core/json/json.ts";

/**
 * Maximum number of expressions in a definition: four for each task of the largest one. Each is parsed when the definition is checked and
 * when it is compiled, in about 10 us. So all of them take a fraction of a second, in slices.
 */
export const expressionsMax = 20_000;

/**
 * Maximum number in one value, such as the inputs of a task, because they are parsed without a pause. A usual task has at most some dozens.
 */
export const valueExpressionsMax = 4_000;

/** The number of `${` in a value; stops counting above `max`. Uses a list instead of recursion, so that any depth works. */
export function countExpressions(value: Json, max: number): number {
  let count = 0;
  const open: Json[] = [value];
  for (let part = open.pop(); part !== undefined && count <= max; part = open.pop()) {
    if (typeof part === "string") {
      for (let at = part.indexOf("${"); at !== -1 && count <= max; at = part.indexOf("${", at + 2)) count++;
    } else if (Array.isArray(part)) for (const item of part) open.push(item);
    else if (!isScalar(part)) for (const key in part) open.push(part[key] as Json);
  }
  return count;
}
