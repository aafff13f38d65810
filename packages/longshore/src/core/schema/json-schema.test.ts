import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { describeTask, task } from "../task.ts";
import { draft07, type JsonSchema, publishedSchema } from "./json-schema.ts";
import type { Schema } from "./schema.ts";

/** The schema that is published for a task with this input schema. */
function published(input: Schema, options?: { strict: boolean }): JsonSchema | undefined {
  return describeTask(
    task("t", () => null, { input }),
    options,
  ).inputSchema;
}

const fieldsOf = (schema: JsonSchema | undefined) => schema?.properties as { [name: string]: JsonSchema };

describe("the published schema of a task", () => {
  it("[C-SCH-01, C-SCH-02] is draft-07 with its fields, and always a list of the required ones", () => {
    expect(published(z.object({ name: z.string(), count: z.int().max(9).min(0), ok: z.boolean(), price: z.number() }))).toEqual({
      $schema: "http://json-schema.org/draft-07/schema#",
      type: "object",
      properties: {
        name: { type: "string" },
        count: { type: "integer", minimum: 0, maximum: 9 },
        ok: { type: "boolean" },
        price: { type: "number" },
      },
      required: ["name", "count", "ok", "price"],
      additionalProperties: true,
    });
    expect(published(z.object({}))).toEqual({ $schema: draft07, type: "object", properties: {}, required: [], additionalProperties: true });
  });

  it("[C-SCH-03] describes the result of the output schema", () => {
    const described = describeTask(task("t", () => ({ at: "1" }), { output: z.object({ at: z.coerce.number() }) }));
    expect(described.outputSchema).toEqual({
      $schema: draft07,
      type: "object",
      properties: { at: { type: "number" } },
      required: ["at"],
      additionalProperties: true,
    });
    const dated = describeTask(task("t", () => ({ at: new Date() }), { output: z.object({ at: z.date() }) }));
    expect(dated.outputSchema).toMatchObject({ properties: { at: { type: "string", format: "date-time" } }, required: ["at"] });
  });

  it("[C-SCH-05, C-SCH-06, C-PIT-06] writes optional and nullable fields in the same way, and requires neither", () => {
    const nullableText = { type: ["string", "null"], nullable: true };
    const schema = published(
      z.object({
        plain: z.string(),
        optional: z.string().optional(),
        nullable: z.string().nullable(),
        nullish: z.string().nullish(),
        choice: z.enum(["a", "b"]).nullable(),
        only: z.literal("x").optional(),
        either: z.union([z.string(), z.object({ a: z.string() })]).optional(),
        list: z.array(z.string()).optional(),
        anything: z.any().optional(),
      }),
    );
    expect(fieldsOf(schema)).toMatchObject({
      plain: { type: "string" },
      optional: nullableText,
      nullable: nullableText,
      nullish: nullableText,
      choice: { type: ["string", "null"], enum: ["a", "b", null], nullable: true },
      only: { enum: ["x", null], nullable: true },
      either: { anyOf: [{ type: "string" }, { type: "object" }, { type: "null" }], nullable: true },
      list: { type: ["array", "null"], items: { type: "string" }, nullable: true },
    });
    expect(fieldsOf(schema).anything).toEqual({});
    expect(schema?.required).toEqual(["plain"]);
  });

  it("[C-SCH-06] requires no field that has a default, and does not make it nullable", () => {
    const schema = published(z.object({ limit: z.number().default(10) }));
    expect(schema).toMatchObject({ properties: { limit: { type: "number", default: 10 } }, required: [] });
  });

  it("[C-SCH-07, C-TEST-07] describes lists, tuples, records, enums, dates, unions and nested objects", () => {
    const schema = published(
      z.object({
        tags: z.array(z.string()),
        pair: z.tuple([z.string(), z.number()]),
        prices: z.record(z.string(), z.number()),
        colour: z.enum(["red", "green"]),
        at: z.iso.date(),
        since: z.coerce.date(),
        until: z.coerce.date().optional(),
        size: z.union([z.string(), z.number()]),
        owner: z.object({ address: z.object({ city: z.string() }) }),
      }),
    );
    expect(fieldsOf(schema)).toMatchObject({
      tags: { type: "array", items: { type: "string" } },
      pair: { type: "array", items: [{ type: "string" }, { type: "number" }] },
      prices: { type: "object", additionalProperties: { type: "number" } },
      colour: { type: "string", enum: ["red", "green"] },
      at: { type: "string", format: "date" },
      since: { type: "string", format: "date-time" },
      until: { type: ["string", "null"], format: "date-time", nullable: true },
      size: { type: ["string", "number"] },
      owner: { properties: { address: { properties: { city: { type: "string" } }, required: ["city"] } }, required: ["address"] },
    });
  });

  it("[C-SCH-07, C-PIT-04] allows additional fields at every depth, except when the schema is strict", () => {
    const input = z.object({
      inner: z.object({ list: z.array(z.strictObject({ a: z.string() })) }),
      prices: z.record(z.string(), z.number()),
      maybe: z.object({ b: z.string() }).optional(),
    });
    const closed = (schema: unknown): unknown[] =>
      typeof schema !== "object" || schema === null
        ? []
        : [
            ...("properties" in schema && "required" in schema ? [(schema as JsonSchema).additionalProperties] : []),
            ...Object.values(schema).flatMap(closed),
          ];
    expect(closed(published(input))).toEqual([true, true, true, true]);
    expect(closed(published(input, { strict: true }))).toEqual([false, false, false, false]);
    expect(fieldsOf(published(input, { strict: true })).prices).toMatchObject({ additionalProperties: { type: "number" } });
  });

  it("allows additional fields in the members of an intersection, because each member receives the fields of the others", () => {
    const part = (name: string) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });
    const both = publishedSchema({ allOf: [part("a"), part("b")] }, { strict: true });
    expect(both?.allOf).toMatchObject([{ additionalProperties: true }, { additionalProperties: true }]);
  });

  it("[C-SCH-07] writes nested types in place, and uses definitions only for types that contain themselves", () => {
    const Address = z.object({ city: z.string() }).meta({ id: "Address" });
    const Node = z.object({
      name: z.string(),
      get children() {
        return z.array(Node);
      },
    });
    const schema = published(z.object({ from: Address, to: Address, tree: Node, next: Node.optional() }));
    expect(fieldsOf(schema)).toMatchObject({ from: { properties: { city: { type: "string" } } }, to: { properties: {} } });
    const [name] = Object.keys(schema?.definitions as object);
    const reference = { $ref: `#/definitions/${name}` };
    expect(schema?.definitions).toEqual({
      [name as string]: {
        type: "object",
        properties: { name: { type: "string" }, children: { type: "array", items: reference } },
        required: ["name", "children"],
        additionalProperties: true,
      },
    });
    expect(fieldsOf(schema)).toMatchObject({ tree: reference, next: { anyOf: [reference, { type: "null" }], nullable: true } });
    expect(published(Node)).toMatchObject({ properties: { children: { items: { $ref: "#" } } } });
    expect(published(Node)).not.toHaveProperty("definitions");
  });

  it("[C-SCH-04, C-SCH-08] is absent when one member cannot be expressed, and nothing crashes", () => {
    for (const at of [z.date(), z.bigint(), z.custom(() => true), z.map(z.string(), z.string()), z.literal(undefined), z.undefined()]) {
      expect(published(z.object({ fine: z.string(), at }))).toBeUndefined();
    }
    expect(published(z.object({ big: z.bigint() }))).toBeUndefined();
    const trap = { "~standard": { version: 1, vendor: "own", validate: (value: unknown) => ({ value }) } } as const;
    expect(published(trap)).toBeUndefined();
    for (const answer of ["text", null, { properties: { a: 5 } }, { $ref: "#/nowhere" }, { $ref: "http://elsewhere" }, { anyOf: 1 }]) {
      const jsonSchema = { input: () => answer as never, output: () => answer as never };
      expect(published({ "~standard": { ...trap["~standard"], jsonSchema } })).toBeUndefined();
    }
    expect(
      publishedSchema(
        new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error("trap");
            },
          },
        ),
      ),
    ).toBeUndefined();
  });

  it("is the hand-written or generated JSON Schema of the task, when it has one", () => {
    const input = { type: "object", properties: { a: { type: "string" } }, required: ["a"] };
    const described = task("t", ({ a }: { a: string }) => a, { schemas: { input, output: { type: "string" } } });
    expect(describeTask(described, { strict: true })).toEqual({
      name: "t",
      inputSchema: { $schema: draft07, ...input, additionalProperties: false },
      outputSchema: { $schema: draft07, type: "string" },
    });
  });
});

describe("publishing", () => {
  it("converts keywords of later drafts to those of draft-07", () => {
    expect(
      publishedSchema({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: { pair: { prefixItems: [{ $ref: "#/$defs/A" }], items: { type: "number" } } },
        dependentRequired: { a: ["b"] },
        $defs: { A: { type: "string", description: "one" } },
      }),
    ).toEqual({
      $schema: draft07,
      type: "object",
      properties: {
        pair: {
          anyOf: [{ items: [{ type: "string", description: "one" }], additionalItems: { type: "number" } }, { type: "null" }],
          nullable: true,
        },
      },
      required: [],
      additionalProperties: true,
      dependencies: { a: ["b"] },
    });
    expect(publishedSchema({ type: "object", unevaluatedProperties: false })).toBeUndefined();
  });

  it("uses the name of the document when its body is behind a reference", () => {
    const list = { type: "object", properties: { next: { $ref: "#/definitions/List" } }, required: [] };
    expect(publishedSchema({ $ref: "#/definitions/List", definitions: { List: list } })).toEqual({
      $schema: draft07,
      type: "object",
      properties: { next: { anyOf: [{ $ref: "#" }, { type: "null" }], nullable: true } },
      required: [],
      additionalProperties: true,
    });
  });

  it("refuses a schema that becomes too large when it is written out", () => {
    const $defs = Object.fromEntries(
      Array.from({ length: 30 }, (_, at) => {
        const next = at === 29 ? { type: "string" } : { $ref: `#/$defs/d${at + 1}` };
        return [`d${at}`, { properties: { a: next, b: next } }];
      }),
    );
    expect(publishedSchema({ $ref: "#/$defs/d0", $defs })).toBeUndefined();
  });

  it("does not change a schema that is in draft-07 already", () => {
    const leaf = fc.constantFrom<JsonSchema>(
      { type: "string" },
      { type: ["number", "null"] },
      { enum: ["a", null] },
      { const: 5 },
      {},
      { type: "object" },
      { $ref: "#" },
      { $ref: "#/definitions/D" },
      { type: "integer", default: 3, description: "three" },
    );
    const { schema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
      schema: fc.oneof(
        { depthSize: "small" },
        leaf,
        fc.record({ type: fc.constant("array"), items: tie("schema") }),
        fc.record({ anyOf: fc.array(tie("schema"), { minLength: 1, maxLength: 3 }) }),
        fc.record({
          properties: fc.dictionary(fc.constantFrom("a", "b", "c"), tie("schema")),
          required: fc.subarray(["a", "b"]),
          additionalProperties: fc.option(tie("schema"), { nil: false }),
        }),
      ),
    }));
    fc.assert(
      fc.property(schema, schema, fc.boolean(), (body, inner, strict) => {
        const once = publishedSchema({ type: "object", properties: { body }, definitions: { D: inner } }, { strict });
        expect(publishedSchema(once, { strict })).toEqual(once);
      }),
    );
  });
});
