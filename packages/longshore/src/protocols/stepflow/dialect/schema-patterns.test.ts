import { expect, it } from "vitest";
import type { JsonObject } from "../../../core/json/json.ts";
import { unusablePattern } from "./schema-patterns.ts";

const bad = { type: "string", pattern: "(?=a)" };
const pathIn = (schema: JsonObject, defs: JsonObject = {}) => unusablePattern({ schema, defs })?.path;

it("finds a pattern in a property that has the name of a keyword", () => {
  for (const name of ["default", "const", "enum", "examples", "pattern", "properties"])
    expect(pathIn({ properties: { [name]: bad } })).toEqual(["properties", name, "pattern"]);
});

it("finds no pattern in values that are data", () => {
  expect(pathIn({ default: bad, const: bad, enum: [bad], examples: [bad] })).toBeUndefined();
  expect(pathIn({ items: { default: { properties: { a: bad } } } })).toBeUndefined();
});

it("finds a pattern below keywords that have one schema or a list of them", () => {
  expect(pathIn({ items: { anyOf: [true, bad] } })).toEqual(["items", "anyOf", 1, "pattern"]);
  expect(pathIn({ patternProperties: { "(?=a)": true } })).toEqual(["patternProperties", "(?=a)"]);
});

it("finds a pattern in a definition that is referred to", () => {
  expect(pathIn({ items: { $ref: "#/$defs/code" } }, { code: bad })).toEqual(["$defs", "code", "pattern"]);
});

it("counts a pattern once, also when its definition is referred to", () => {
  const $defs = Object.fromEntries(Array.from({ length: 60 }, (_, at) => [`d${at}`, { type: "string", pattern: `^a${at}$` }]));
  const properties = Object.fromEntries(Object.keys($defs).map((name) => [name, { $ref: `#/$defs/${name}` }]));
  expect(unusablePattern({ schema: { $defs, properties }, defs: {} })).toBeNull();
});
