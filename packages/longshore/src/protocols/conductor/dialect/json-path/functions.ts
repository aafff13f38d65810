// The functions at the end of a JSONPath. Each works on what the path led to; undefined means that it cannot.

import { isObject, type Json } from "../../../../core/json/json.ts";
import { ExactNumber } from "../../../../core/json/json-exact.ts";
import type { FunctionName } from "./path.ts";

export function callFunction(name: FunctionName, value: Json | undefined, args: readonly Json[]): Json | undefined {
  switch (name) {
    case "length":
    case "size":
      return Array.isArray(value) ? value.length : isObject(value) ? Object.keys(value).length : undefined;
    case "keys":
      return isObject(value) ? Object.keys(value) : undefined;
    case "first":
      return Array.isArray(value) ? value[0] : undefined;
    case "last":
      return Array.isArray(value) ? value.at(-1) : undefined;
    case "index":
      return Array.isArray(value) && typeof args[0] === "number" ? value.at(args[0]) : undefined;
    case "append":
      return Array.isArray(value) ? [...value, ...args] : undefined;
    case "concat":
      return [...(Array.isArray(value) ? value : []), ...args.flat()].filter((part) => typeof part === "string").join("");
    default:
      return aggregate(name, numbersOf(value, args));
  }
}

function numbersOf(value: Json | undefined, args: readonly Json[]): number[] {
  return [...(Array.isArray(value) ? value : []), ...args.flat()]
    .filter((part) => typeof part === "number" || part instanceof ExactNumber)
    .map(Number);
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
