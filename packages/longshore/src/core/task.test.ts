import { describe, expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import type { WorkOptions } from "../work.ts";
import type { Context } from "./context.ts";
import { LongshoreError } from "./errors.ts";
import { describeTask, type Task, task } from "./task.ts";

describe("a task's types", () => {
  it("are the types of its handler", () => {
    const greet = task("greet", async ({ name }: { name: string }, ctx) => {
      expectTypeOf(ctx).toEqualTypeOf<Context>();
      return { text: `Hello, ${name}!` };
    });
    expectTypeOf(greet).toEqualTypeOf<Task<{ name: string }, { text: string }>>();
    expectTypeOf(task("one", () => 1)).toEqualTypeOf<Task<unknown, number>>();
    expectTypeOf(task("nothing", async () => {})).toEqualTypeOf<Task<unknown, void>>();
  });

  it("do not include the deferral for callers", () => {
    const later = task("later", async (input: { round: number }, ctx) => (input.round < 3 ? ctx.defer("5s") : { rounds: input.round }));
    expectTypeOf(later).toEqualTypeOf<Task<{ round: number }, { rounds: number }>>();
  });

  it("are the types of the schema: its input for callers, its output for the handler", () => {
    const input = z.object({ count: z.string().transform(Number), unit: z.string().default("kg") });
    const weigh = task(
      "weigh",
      (value) => {
        expectTypeOf(value).toEqualTypeOf<{ count: number; unit: string }>();
        return value.count;
      },
      { input },
    );
    expectTypeOf(weigh).toEqualTypeOf<Task<{ count: string; unit?: string | undefined }, number>>();
  });

  it("are the types of both schemas for a handler without its own types", () => {
    const input = z.object({ items: z.array(z.object({ count: z.number() })) });
    const output = z.number();
    const sum = task("sum", async ({ items }) => items.reduce((total, item) => total + item.count, 0), { input, output });
    expectTypeOf(sum).toEqualTypeOf<Task<{ items: { count: number }[] }, number>>();
    const later = task("later", async ({ items }, ctx) => (items.length === 0 ? ctx.defer("1s") : 1), { input, output });
    expectTypeOf(later).toEqualTypeOf<Task<{ items: { count: number }[] }, number>>();
    const more = task("more", async ({ items }) => ({ items, extra: true }), { input, output: input });
    expectTypeOf(more).toEqualTypeOf<Task<{ items: { count: number }[] }, { items: { count: number }[] }>>();
    // @ts-expect-error The handler returns a text, the schema takes a number.
    task("wrong", async ({ items }) => `${items.length}`, { input, output });
  });

  it("must match the schemas", () => {
    // @ts-expect-error The schema passes a number, the handler expects a text.
    task("wrong-input", (value: { name: string }) => value.name, { input: z.object({ name: z.number() }) });
    // @ts-expect-error The handler returns a number, the schema takes a text.
    task("wrong-output", () => ({ id: 1 }), { output: z.object({ id: z.string() }) });
    task("right", (value: { name: string }) => ({ id: value.name }), {
      input: z.object({ name: z.string() }),
      output: z.object({ id: z.string() }),
    });
  });

  it("allow tasks of any kind in one list", () => {
    const tasks: WorkOptions["tasks"] = [task("a", ({ name }: { name: string }) => name), task("b", (n: number) => n), task("c", () => {})];
    expect(tasks).toHaveLength(3);
  });
});

describe("task", () => {
  it("makes a frozen value and registers nothing", () => {
    const one = task("same", () => 1, { timeout: "5s", labels: ["gpu"], retry: { limit: 2 }, description: "Counts." });
    const other = task("same", () => 2);
    expect(one.timeoutMs).toBe(5_000);
    expect(one.labels).toEqual(["gpu"]);
    expect(one.retry).toEqual({ limit: 2 });
    expect(Object.isFrozen(one)).toBe(true);
    expect(other.timeoutMs).toBeUndefined();
  });

  it.each(["", "two words", "a\n", "ü", "x".repeat(201)])("refuses the name %j, which no protocol could carry", (name) => {
    expect(() => task(name, () => null)).toThrow(LongshoreError);
  });

  it("has JSON Schemas when the schema's library can make them", () => {
    const described = task("add", ({ a }) => ({ sum: a }), {
      input: z.object({ a: z.number() }),
      output: z.object({ sum: z.number() }),
      description: "Adds.",
    });
    expect(describeTask(described)).toMatchObject({
      name: "add",
      description: "Adds.",
      inputSchema: { type: "object", properties: { a: { type: "number" } }, required: ["a"] },
      outputSchema: { properties: { sum: { type: "number" } } },
    });
    expect(describeTask(task("plain", () => null))).toEqual({ name: "plain" });
  });

  it("has no JSON Schema when the library cannot express it", () => {
    const odd = { "~standard": { version: 1, vendor: "own", validate: (value: unknown) => ({ value }) } } as const;
    expect(describeTask(task("odd", () => null, { input: odd }))).toEqual({ name: "odd" });
    const throwing = task("throwing", () => null, { input: z.object({ at: z.date() }) });
    expect(describeTask(throwing)).toEqual({ name: "throwing" });
  });
});
