// How a filter compares two values. `undefined` is the value of a path that finds nothing; it equals nothing, not even null.

import { isObject, type Json } from "../../../../core/json/json.ts";
import { ExactNumber } from "../../../../core/json/json-exact.ts";
import type { Operator } from "./path.ts";

type Value = Json | undefined;

/** `spend` is called with the number of values that were visited. */
export function compare(operator: Operator, left: Value, right: Value, spend: (visits: number) => void): boolean {
  if (left instanceof ExactNumber || right instanceof ExactNumber) return compare(operator, plain(left), plain(right), spend);
  switch (operator) {
    case "==":
      return looselyEqual(left, right, spend);
    case "!=":
      return !looselyEqual(left, right, spend);
    case "===":
      return equal(left, right, spend);
    case "!==":
      return !equal(left, right, spend);
    case "<":
    case "<=":
    case ">":
    case ">=":
      return ordered(operator, left, right);
    case "in":
      return isIn(left, right, spend);
    case "nin":
      return !isIn(left, right, spend);
    case "contains":
      return typeof left === "string" && typeof right === "string" ? left.includes(right) : isIn(right, left, spend);
    case "subsetof":
      return Array.isArray(left) && left.every((item) => isIn(item, right, spend));
    case "all":
      return Array.isArray(right) && right.every((item) => isIn(item, left, spend));
    case "anyof":
      return Array.isArray(left) && left.some((item) => isIn(item, right, spend));
    case "noneof":
      return Array.isArray(left) && !left.some((item) => isIn(item, right, spend));
    case "size":
      return sizeOf(left) === right;
    case "empty":
      return typeof right === "boolean" && sizeOf(left) !== undefined && (sizeOf(left) === 0) === right;
    case "=~":
      // Only a pattern can be matched, and a pattern is no value.
      return false;
  }
}

/** As Jayway has it, a text that reads as a number equals that number. */
function looselyEqual(left: Value, right: Value, spend: (visits: number) => void): boolean {
  if (typeof left === "number" && typeof right === "string") return right.trim() !== "" && Number(right) === left;
  if (typeof left === "string" && typeof right === "number") return left === String(right);
  return equal(left, right, spend);
}

function equal(left: Value, right: Value, spend: (visits: number) => void): boolean {
  if (left === undefined || right === undefined) return false;
  const pairs: [Json, Json][] = [[left, right]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    spend(1);
    const [one, other] = pair;
    if (one === other || (isNumber(one) && isNumber(other) && Number(one) === Number(other))) continue;
    if (Array.isArray(one) && Array.isArray(other)) {
      if (one.length !== other.length) return false;
      one.forEach((item, at) => {
        pairs.push([item, other[at] as Json]);
      });
    } else if (isObject(one) && isObject(other)) {
      const keys = Object.keys(one);
      if (keys.length !== Object.keys(other).length || !keys.every((key) => Object.hasOwn(other, key))) return false;
      for (const key of keys) pairs.push([one[key] as Json, other[key] as Json]);
    } else return false;
  }
  return true;
}

function ordered(operator: "<" | "<=" | ">" | ">=", left: Value, right: Value): boolean {
  const numbers = typeof left === "number" && typeof right === "number";
  const texts = typeof left === "string" && typeof right === "string";
  if (!numbers && !texts) return false;
  if (operator === "<") return left < right;
  if (operator === "<=") return left <= right;
  return operator === ">" ? left > right : left >= right;
}

function isIn(item: Value, list: Value, spend: (visits: number) => void): boolean {
  return Array.isArray(list) && list.some((one) => equal(item, one, spend));
}

/** Numbers are compared as doubles, as ever. */
function plain(value: Value): Value {
  return value instanceof ExactNumber ? Number(value) : value;
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || value instanceof ExactNumber;
}

function sizeOf(value: Value): number | undefined {
  return typeof value === "string" || Array.isArray(value) ? value.length : undefined;
}
