// The functions at the end of a JSONPath. Each is applied to the value of the path; undefined means that it cannot be applied.

import { isObject, type Json } from "../../../../core/json/json.ts";
import { ExactNumber } from "../../../../core/json/json-exact.ts";
import { type Spend, visitsOf } from "./cost.ts";
import type { FunctionName } from "./path.ts";

/** `spend` is called before the work that it counts: a filter repeats it for each item. */
export function callFunction(name: FunctionName, value: Json | undefined, args: readonly Json[], spend: Spend): Json | undefined {
  switch (name) {
    case "length":
    case "size":
      return Array.isArray(value) ? value.length : keysOf(value, spend)?.length;
    case "keys":
      return keysOf(value, spend);
    case "first":
      return Array.isArray(value) ? value[0] : undefined;
    case "last":
      return Array.isArray(value) ? value.at(-1) : undefined;
    case "index":
      return Array.isArray(value) && typeof args[0] === "number" ? value.at(args[0]) : undefined;
    case "append":
      if (!Array.isArray(value)) return undefined;
      spend(value.length + args.length);
      return [...value, ...args];
    case "concat":
      return partsOf(value, args, spend)
        .filter((item) => typeof item === "string")
        .join("");
    default:
      return aggregate(name, numbersOf(value, args, spend));
  }
}

function keysOf(value: Json | undefined, spend: Spend): string[] | undefined {
  if (!isObject(value)) return undefined;
  const keys = Object.keys(value);
  spend(keys.length);
  return keys;
}

function numbersOf(value: Json | undefined, args: readonly Json[], spend: Spend): number[] {
  return partsOf(value, args, spend)
    .filter((item) => typeof item === "number" || item instanceof ExactNumber)
    .map(Number);
}

/** The items of the list, and of the arguments. */
function partsOf(value: Json | undefined, args: readonly Json[], spend: Spend): Json[] {
  const items: Json[] = [];
  for (const list of [Array.isArray(value) ? value : [], ...args]) {
    for (const item of Array.isArray(list) ? list : [list]) {
      spend(visitsOf(item));
      items.push(item);
    }
  }
  return items;
}

function aggregate(name: "min" | "max" | "avg" | "stddev" | "sum", numbers: readonly number[]): number | undefined {
  if (numbers.length === 0) return undefined;
  if (name === "min") return numbers.reduce((least, next) => Math.min(least, next));
  if (name === "max") return numbers.reduce((most, next) => Math.max(most, next));
  const sum = numbers.reduce((total, next) => total + next, 0);
  if (name === "sum") return sum;
  const mean = sum / numbers.length;
  if (name === "avg") return mean;
  return Math.sqrt(numbers.reduce((total, next) => total + (next - mean) ** 2, 0) / numbers.length);
}
