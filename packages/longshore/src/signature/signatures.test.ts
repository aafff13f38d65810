import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { draft07, type JsonSchema } from "../core/schema/json-schema.ts";
import { readSignatures } from "./signatures.ts";

const fixture = (name: string) => fileURLToPath(new URL(`../../test/fixtures/signatures/${name}`, import.meta.url));

describe("schemas from signatures", () => {
  // One program for all tests, because the compiler needs a second to make one.
  const all = new Map(readSignatures(fixture("tasks.ts")).map((each) => [each.task, each]));
  const input = (name: string) => all.get(name)?.schemas.input as JsonSchema;
  const output = (name: string) => all.get(name)?.schemas.output as JsonSchema;
  const fields = (schema: JsonSchema) => schema.properties as { [name: string]: JsonSchema };
  const why = (name: string) => Object.fromEntries(all.get(name)?.missing.map((each) => [each.side, each.why]) ?? []);

  it("[C-SCH-01, C-SCH-02] describe the parameter's fields, and which are required", () => {
    expect(input("basic")).toEqual({
      $schema: draft07,
      type: "object",
      properties: {
        text: { type: "string" },
        count: { type: "number" },
        flag: { type: "boolean" },
        anything: {},
        id: { type: "string" },
      },
      required: ["text", "count", "flag", "anything", "id"],
      additionalProperties: true,
    });
    expect(input("instances")).toEqual({ $schema: draft07, type: "object", properties: {}, required: [], additionalProperties: true });
  });

  it("[C-SCH-03] describe the value of the promise", () => {
    expect(output("basic")).toEqual(input("basic"));
    expect(output("optional")).toEqual({ $schema: draft07, type: "string" });
    expect(output("collections")).toEqual({ $schema: draft07, type: "number" });
    expect(output("deferring")).toMatchObject({ type: "object", properties: { rounds: { type: "number" } }, required: ["rounds"] });
  });

  it("[C-SCH-05, C-SCH-06] make optional and nullable fields nullable and not required", () => {
    expect(fields(input("optional"))).toEqual({
      a: { type: ["string", "null"], nullable: true },
      b: { type: ["number", "null"], nullable: true },
      c: { type: ["boolean", "null"], nullable: true },
      d: { type: ["string", "null"], enum: ["high", "low", null], nullable: true },
      e: {
        type: ["object", "null"],
        properties: { city: { type: "string", description: "Where the house stands." }, zip: { type: ["string", "null"], nullable: true } },
        required: ["city"],
        additionalProperties: true,
        nullable: true,
      },
      f: { type: "string", const: "only" },
    });
    expect(input("optional").required).toEqual(["f"]);
  });

  it("[C-SCH-06] do not require fields with a default, and contain the default", () => {
    expect(fields(input("defaults"))).toEqual({
      name: { type: "string" },
      greeting: { type: "string", default: "Hello" },
      limit: { type: "number", default: -5 },
      loud: { type: "boolean", default: false },
      since: { type: "string", format: "date-time" },
    });
    expect(input("defaults").required).toEqual(["name"]);
  });

  it("[C-SCH-07, C-TEST-07] support lists, tuples, records, enums, unions, dates, nested and computed types", () => {
    expect(fields(input("collections"))).toMatchObject({
      tags: { type: "array", items: { type: "string" } },
      pair: { type: "array", items: [{ type: "string" }, { type: "number" }], minItems: 2, maxItems: 2 },
      rest: { type: "array", items: [{ type: "string" }], additionalItems: { type: "number" }, minItems: 1 },
      prices: { type: "object", additionalProperties: { type: "number" } },
      priority: { type: "string", enum: ["high", "low"] },
      level: { type: "number", enum: [1, 2, 3] },
      either: { type: ["string", "number"] },
      shape: { anyOf: [{ properties: { kind: { const: "circle" } } }, { properties: { kind: { const: "square" } } }] },
      at: { type: "string", format: "date-time" },
      home: { type: "object", properties: { city: { type: "string" } } },
      picked: { type: "object", properties: { city: { type: "string" }, floor: { type: "number" } }, required: ["city", "floor"] },
    });
  });

  it("[C-SCH-07] use definitions for types that contain themselves", () => {
    const tree = {
      type: "object",
      properties: { name: { type: "string" }, children: { type: "array", items: { $ref: "#/definitions/Tree" } } },
      required: ["name", "children"],
      additionalProperties: true,
    };
    expect(input("recursive")).toMatchObject({
      properties: { root: { $ref: "#/definitions/Tree" }, second: { $ref: "#/definitions/Tree" } },
      definitions: { Tree: tree },
    });
    expect(output("recursive")).toMatchObject({ nullable: true, definitions: { Tree: tree } });
    expect(fields(input("self")).children).toEqual({ type: "array", items: { $ref: "#" } });
    expect(input("collections")).not.toHaveProperty("definitions");
  });

  it("[C-EXEC-04] describe returned instances in their serialised form", () => {
    expect(fields(output("instances"))).toMatchObject({
      cost: { properties: { amount: { type: "number" }, currency: { type: "string" } }, required: ["amount", "currency"] },
      outside: { properties: { celsius: { type: "number" }, warm: { type: "boolean" } } },
      seats: { type: "object", additionalProperties: { type: "array", items: { type: "number" } } },
      bytes: { type: "string", contentEncoding: "base64" },
    });
    expect(Object.keys(fields(fields(output("instances")).cost as JsonSchema))).toEqual(["amount", "currency"]);
  });

  it("[C-SCH-04, C-SCH-08] are absent when one type cannot be expressed, with the reason", () => {
    expect(all.get("unsayable")?.schemas).toEqual({});
    expect(why("unsayable")).toEqual({
      input: "orders[].total is a bigint, which JSON does not have",
      output: "print is a function, which JSON does not have",
    });
    expect(why("mapped")).toEqual({ input: "seats is a Map, which JSON does not have" });
    expect(why("untyped")).toEqual({ input: "it has a parameter without a type" });
    expect(why("silent")).toEqual({ output: "it returns nothing" });
  });

  it("[C-SCH-07, C-PIT-04] allow no additional fields at any depth when strict", () => {
    const strict = readSignatures(fixture("tasks.ts"), { strict: true }).find((each) => each.task === "optional");
    expect(strict?.schemas.input).toMatchObject({ additionalProperties: false, properties: { e: { additionalProperties: false } } });
  });

  it("are read from exported functions when a file contains no tasks", () => {
    const handlers = readSignatures(fixture("handlers.ts"));
    expect(handlers.map((each) => each.task)).toEqual(["greet", "count"]);
    expect(handlers[0]).toMatchObject({ line: 3, schemas: { input: { required: ["name"] }, output: { required: ["text"] } } });
  });

  it("are read from JavaScript with comments that declare its types", () => {
    expect(readSignatures(fixture("plain.mjs"))).toMatchObject([
      { task: "echo", schemas: { input: { properties: { times: { type: ["number", "null"] } }, required: ["name"] } } },
    ]);
  });

  it("need a file that exists", () => {
    expect(() => readSignatures(fixture("nowhere.ts"))).toThrow(/nowhere\.ts does not exist/);
  });
});
