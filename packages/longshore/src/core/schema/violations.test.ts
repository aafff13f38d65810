import { describe, expect, it } from "vitest";
import type { Json, JsonObject } from "../json/json.ts";
import { parseExact } from "../json/json-exact.ts";
import { violations } from "./violations.ts";

const paths = (schema: Json, value: Json, defs: JsonObject = {}) => violations({ schema, defs }, value).map(({ path }) => path.join("."));
const fits = (schema: Json, value: Json, defs: JsonObject = {}) => paths(schema, value, defs).length === 0;

describe("a value and its schema", () => {
  it.each<[string, Json, Json[], Json[]]>([
    ["true and false", true, [1, null], []],
    ["false", false, [], [1, null]],
    ["type", { type: "integer" }, [1, -0, 1e3], [1.5, "1", null]],
    ["types", { type: ["string", "null"] }, ["", null], [0, []]],
    ["nullable", { type: "string", nullable: true }, ["", null], [0]],
    ["enum", { enum: [1, { a: [1], b: 2 }] }, [1, { b: 2, a: [1] }], ["1", { a: [1] }]],
    ["const", { const: null }, [null], [0, "", false]],
    ["bounds", { minimum: 1, exclusiveMaximum: 3 }, [1, 2.9, "text"], [0, 3]],
    ["multipleOf", { multipleOf: 0.5 }, [1.5, 2], [1.2]],
    ["lengths", { minLength: 2, maxLength: 3 }, ["ab", "𝄞𝄞𝄞", 7], ["a", "abcd"]],
    ["pattern", { pattern: "b+$" }, ["abb", 7], ["abc"]],
    ["a pattern that cannot be matched", { pattern: "(?=a)b" }, ["anything"], []],
    ["items", { items: { type: "number" }, minItems: 1, maxItems: 2 }, [[1], [1, 2]], [[], ["x"], [1, 2, 3]]],
    ["a tuple", { prefixItems: [{ type: "string" }], items: { type: "number" } }, [["a", 1], []], [[1], ["a", "b"]]],
    ["a tuple of draft-07", { items: [{ type: "string" }], additionalItems: false }, [["a"]], [["a", 1]]],
    [
      "uniqueItems",
      { uniqueItems: true },
      [[1, "1", [1]]],
      [
        [
          { a: 1, b: 2 },
          { b: 2, a: 1 },
        ],
      ],
    ],
    ["contains", { contains: { const: 1 } }, [[2, 1], "text"], [[2], []]],
    ["required", { required: ["a"] }, [{ a: null }, 7], [{}, { b: 1 }]],
    ["properties", { properties: { a: { type: "number" } } }, [{ a: 1 }, { b: "x" }], [{ a: "x" }]],
    [
      "other properties",
      { properties: { a: {} }, patternProperties: { "^x-": { type: "string" } }, additionalProperties: false },
      [{ a: 1, "x-b": "" }],
      [{ b: 1 }, { "x-b": 1 }],
    ],
    ["names", { propertyNames: { pattern: "^[a-z]$" }, maxProperties: 1 }, [{ a: 1 }], [{ A: 1 }, { a: 1, b: 2 }]],
    ["allOf", { allOf: [{ minimum: 1 }, { maximum: 2 }] }, [1], [0, 3]],
    ["anyOf", { anyOf: [{ type: "string" }, { minimum: 2 }] }, ["", 2], [1]],
    ["oneOf", { oneOf: [{ minimum: 1 }, { maximum: 1 }] }, [0, 2], [1]],
    ["not", { not: { type: "string" } }, [1], [""]],
    ["if", { if: { type: "string" }, then: { minLength: 1 }, else: { minimum: 1 } }, ["a", 1], ["", 0]],
    ["keywords that are not known", { format: "email", colour: 7, type: "unheard" }, ["no email"], []],
  ])("go together by %s", (_name, schema, good, bad) => {
    for (const value of good) expect(fits(schema, value), JSON.stringify(value)).toBe(true);
    for (const value of bad) expect(fits(schema, value), JSON.stringify(value)).toBe(false);
  });

  it("takes a number that no double holds as a number, also when it is larger than any double", () => {
    for (const text of ["12345678901234567890", "1e400", "-1e400"]) {
      expect(paths({ type: "number" }, parseExact(text) as Json)).toEqual([]);
    }
    expect(paths({ type: "object", properties: { n: { maximum: 5 } } }, parseExact('{"n":1e400}') as Json)).toEqual(["n"]);
  });

  it("are compared through references, also when a schema contains itself", () => {
    const defs = { list: { type: "object", properties: { next: { $ref: "#/$defs/list" }, value: { type: "number" } } } };
    expect(fits({ $ref: "#/$defs/list" }, { value: 1, next: { value: 2 } }, defs)).toBe(true);
    expect(paths({ $ref: "#/$defs/list" }, { value: 1, next: { value: "2" } }, defs)).toEqual(["next.value"]);
    expect(fits({ $ref: "#/$defs/gone" }, 1)).toBe(true);
  });

  it("are reported with their path, and only the first few", () => {
    expect(paths({ items: { properties: { a: { type: "string" } } } }, [{ a: 1 }, { a: "" }, { a: 2 }])).toEqual(["0.a", "2.a"]);
    expect(paths({ items: { type: "string" } }, Array(1_000).fill(1))).toHaveLength(20);
  });

  it("take a bounded amount of work, for any schema", () => {
    const doubled: JsonObject = { a0: true };
    for (let level = 1; level <= 60; level++) doubled[`a${level}`] = { allOf: Array(2).fill({ $ref: `#/$defs/a${level - 1}` }) };
    const costly: [Json, Json, JsonObject?][] = [
      [{ $ref: "#/$defs/a60" }, 1, doubled],
      [{ $ref: "#/$defs/me" }, 1, { me: { $ref: "#/$defs/me" } }],
      [{ pattern: "^(a+)+$" }, `${"a".repeat(200_000)}!`],
      [{ items: { enum: Array.from({ length: 1_000 }, (_, at) => [at]) } }, Array.from({ length: 1_000 }, () => ["x"])],
      [{ patternProperties: { "^(a?){500}$": {} } }, Object.fromEntries(Array.from({ length: 500 }, (_, at) => [`aaaa${at}`, 1]))],
    ];
    for (const [schema, value, defs] of costly) expect(violations({ schema, defs: defs ?? {} }, value)).toMatchObject([{ path: [] }]);
  });
});
