import { expect, it } from "vitest";
import { isSameJson } from "./json-same.ts";

it.each([
  ["the same text", '{"a":1}', '{"a":1}'],
  ["another order of keys, at any depth", '{"a":[{"x":1,"y":2}],"b":null}', '{ "b": null, "a": [{"y":2, "x":1}] }'],
  ["another spelling of a text or a number", '["\\u0041",1.0]', '["A",1]'],
  ["large numbers with the same digits", '{"b":1,"a":12345678901234567890}', '{"a":12345678901234567890,"b":1}'],
])("finds %s equal", (_, one, other) => {
  expect(isSameJson(one, other)).toBe(true);
});

it.each([
  ["another value", '{"a":1}', '{"a":2}'],
  ["another order of a list", "[1,2]", "[2,1]"],
  ["a missing member", '{"a":null}', "{}"],
  ["large numbers that differ in their last digit", '{"b":1,"a":12345678901234567890}', '{"a":12345678901234567891,"b":1}'],
  ["a text and a number", '"1"', "1"],
])("finds %s different", (_, one, other) => {
  expect(isSameJson(one, other)).toBe(false);
});
