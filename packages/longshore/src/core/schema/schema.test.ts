import { expect, it } from "vitest";
import { z } from "zod";
import { LongshoreError, TerminalError } from "../errors.ts";
import { type Schema, validate } from "./schema.ts";

function refused(schema: Schema, value: unknown): TerminalError {
  try {
    void validate(schema, value, "input");
  } catch (error) {
    expect(error).toBeInstanceOf(TerminalError);
    return error as TerminalError;
  }
  throw new Error("It was not refused.");
}

it("returns the schema's result for the value", () => {
  expect(validate(z.object({ n: z.string().transform(Number) }), { n: "5" }, "input")).toEqual({ n: 5 });
});

it("refuses permanently and names the field with a readable path", () => {
  const schema = z.object({ items: z.array(z.object({ name: z.string() })) });
  const error = refused(schema, { items: [{ name: "a" }, { name: 1 }] });
  expect(error.message).toContain("items[1].name");
  expect(error.cause).toBeInstanceOf(LongshoreError);
  expect(error.cause).toMatchObject({ code: "LONGSHORE_BAD_INPUT", detail: { field: "items[1].name" } });
});

it("names the value itself when all of it is wrong, and only the first few of many wrong fields", () => {
  expect(refused(z.string(), 5).message).toContain("input: ");
  const many = z.object(Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`f${at}`, z.string()])));
  expect(refused(many, {}).message).toContain("and 4 more");
});

it("supports asynchronous schemas, and paths with wrapped keys", async () => {
  const slow: Schema = {
    "~standard": { version: 1, vendor: "own", validate: async () => ({ issues: [{ message: "taken", path: [{ key: "user" }, "name"] }] }) },
  };
  await expect(validate(slow, {}, "output")).rejects.toMatchObject({
    cause: { code: "LONGSHORE_BAD_OUTPUT", detail: { field: "user.name" } },
  });
});
