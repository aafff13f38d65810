// How a filter compares two values. `undefined` is the value of a path that finds nothing; it equals nothing, not even null.

import { isObject, type Json } from "../../../../core/json/json.ts";
import { ExactNumber } from "../../../../core/json/json-exact.ts";
import { hasText } from "../../../../core/text-search.ts";
import { type Spend, visitsOf, visitsOfChars } from "./cost.ts";
import type { Operator } from "./path.ts";

type Value = Json | undefined;

/** Counts its work with `spend`, because a filter compares once for each item. */
export function compare(operator: Operator, left: Value, right: Value, spend: Spend): boolean {
  if (left instanceof ExactNumber || right instanceof ExactNumber) {
    spend(visitsOf(left) + visitsOf(right));
    return compare(operator, plain(left), plain(right), spend);
  }
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
      return ordered(operator, left, right, spend);
    case "in":
      return isIn(left, right, spend);
    case "nin":
      return !isIn(left, right, spend);
    case "contains":
      if (typeof left !== "string" || typeof right !== "string") return isIn(right, left, spend);
      spend(visitsOf(left) + visitsOf(right));
      return hasText(left, right);
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
      // `=~` needs a pattern, and a pattern is not a value.
      return false;
  }
}

/**
 * As in Jayway, a number may equal a text. A text on the right is read as a number (`1 == "1.0"`). A text on the left must be the number as it
 * is written (`"1" == 1`).
 */
function looselyEqual(left: Value, right: Value, spend: Spend): boolean {
  if (typeof left === "number" && typeof right === "string") {
    spend(visitsOf(right));
    return right.trim() !== "" && Number(right) === left;
  }
  if (typeof left === "string" && typeof right === "number") return left === String(right);
  return equal(left, right, spend);
}

function equal(left: Value, right: Value, spend: Spend): boolean {
  spend(1);
  if (left === undefined || right === undefined) return false;
  const pairs: [Json, Json][] = [[left, right]];
  for (let pair = pairs.pop(); pair !== undefined; pair = pairs.pop()) {
    const [one, other] = pair;
    if (isLong(one, other)) spend(visitsOf(one) + visitsOf(other));
    if (one === other || (isNumber(one) && isNumber(other) && Number(one) === Number(other))) continue;
    if (Array.isArray(one) && Array.isArray(other)) {
      if (one.length !== other.length) return false;
      spend(one.length);
      one.forEach((item, at) => {
        pairs.push([item, other[at] as Json]);
      });
    } else if (isObject(one) && isObject(other)) {
      const keys = Object.keys(one);
      const count = Object.keys(other).length;
      spend(keys.length + count);
      if (keys.length !== count || !keys.every((key) => Object.hasOwn(other, key))) return false;
      for (const key of keys) pairs.push([one[key] as Json, other[key] as Json]);
    } else return false;
  }
  return true;
}

/** True for two long values that must be compared in full: texts of different lengths differ without a comparison. */
function isLong(one: Json, other: Json): boolean {
  if (typeof one === "string") return typeof other === "string" && one.length === other.length;
  return one instanceof ExactNumber || other instanceof ExactNumber;
}

function ordered(operator: "<" | "<=" | ">" | ">=", left: Value, right: Value, spend: Spend): boolean {
  const numbers = typeof left === "number" && typeof right === "number";
  const texts = typeof left === "string" && typeof right === "string";
  if (!numbers && !texts) return false;
  if (texts) spend(visitsOfChars(Math.min(left.length, right.length)));
  if (operator === "<") return left < right;
  if (operator === "<=") return left <= right;
  return operator === ">" ? left > right : left >= right;
}

function isIn(item: Value, list: Value, spend: Spend): boolean {
  spend(1);
  return item !== undefined && Array.isArray(list) && list.some((one) => equal(item, one, spend));
}

/** Numbers are compared as doubles. */
function plain(value: Value): Value {
  return value instanceof ExactNumber ? Number(value) : value;
}

function isNumber(value: unknown): boolean {
  return typeof value === "number" || value instanceof ExactNumber;
}

function sizeOf(value: Value): number | undefined {
  return typeof value === "string" || Array.isArray(value) ? value.length : undefined;
}
