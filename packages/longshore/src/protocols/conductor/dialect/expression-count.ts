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
  for (let inner = open.pop(); inner !== undefined && count <= max; inner = open.pop()) {
    if (typeof inner === "string") {
      for (let at = inner.indexOf("${"); at !== -1 && count <= max; at = inner.indexOf("${", at + 2)) count++;
    } else if (Array.isArray(inner)) for (const item of inner) open.push(item);
    else if (!isScalar(inner)) for (const key in inner) open.push(inner[key] as Json);
  }
  return count;
}
