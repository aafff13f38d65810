import { expect, it } from "vitest";
import { z } from "zod";
import { fitInput } from "./fit-input.ts";
import { jsonSchemaOf, type Schema, validate } from "./schema.ts";

const read = (schema: Schema, value: unknown) => validate(schema, value, "input");

it("[C-EXEC-04] gives a missing field the schema's default, or null when the schema allows null", () => {
  const schema = z.object({ name: z.string().nullable(), limit: z.number().default(10), note: z.string().optional() });
  expect(read(schema, {})).toEqual({ name: null, limit: 10 });
  expect(read(schema, { name: "a", limit: 1, note: "n", more: true })).toEqual({ name: "a", limit: 1, note: "n" });
});

it("[C-EXEC-04] accepts null for an optional field", () => {
  const schema = z.object({
    limit: z.number().default(10),
    note: z.string().optional(),
    any: z.unknown().optional(),
    both: z.string().nullish(),
  });
  expect(read(schema, { limit: null, note: null, any: null, both: null })).toEqual({ limit: 10, any: null, both: null });
});

it("does the same inside lists, nested objects and types that contain themselves", () => {
  const Node = z.object({
    name: z.string().nullable(),
    get children(): z.ZodDefault<z.ZodArray<typeof Node>> {
      return z.array(Node).default([]);
    },
  });
  const schema = z.object({ trees: z.array(Node), inner: z.object({ n: z.number().optional() }).nullable() });
  expect(read(schema, { trees: [{ children: [{}, { name: "a", children: null }] }], inner: { n: null } })).toEqual({
    trees: [
      {
        name: null,
        children: [
          { name: null, children: [] },
          { name: "a", children: [] },
        ],
      },
    ],
    inner: {},
  });
});

it("leaves other mistakes to the schema, which names the field", () => {
  const schema = z.object({ name: z.string(), inner: z.object({ n: z.number() }) });
  expect(() => read(schema, { inner: { n: 1 } })).toThrow("name: ");
  expect(() => read(schema, { name: null, inner: { n: null } })).toThrow(/name: .*inner\.n: /);
});

it("works for asynchronous schemas", async () => {
  const schema = z.object({ name: z.string().nullable() }).refine(async () => true);
  const slow: Schema = { "~standard": { ...schema["~standard"], validate: async (value) => schema["~standard"].validate(value) } };
  await expect(read(slow, {})).resolves.toEqual({ name: null });
});

it("returns the value itself when there is nothing to change", () => {
  const schema = z.object({ list: z.array(z.object({ a: z.string() })) });
  const value = { list: [{ a: "x" }] };
  expect(fitInput(value, jsonSchemaOf(schema, "input"))).toBe(value);
  expect(fitInput(value, undefined)).toBe(value);
});
