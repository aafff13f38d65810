// The types of `w`: from tasks, workflows and schemas.

import { expectTypeOf, it } from "vitest";
import { z } from "zod";
import { task } from "../../core/task.ts";
import { workflow } from "../../workflow.ts";
import type { FunctionScope } from "./scope.ts";

const price = task("price", async (order: { items: string[] }) => ({ total: order.items.length }));
const billing = workflow("billing", async (_w, input: { total: number }) => `R-${input.total}`);
const receive = task("receive", async () => ({ at: new Date() }));
const receiving = workflow("receiving", async () => ({ at: new Date() }));
const approval = z.object({ ok: z.boolean() });

it("w has the types of the tasks, workflows and schemas that are passed to it", () => {
  const use = async (w: FunctionScope) => {
    expectTypeOf(await w.step(price, { items: ["a"] })).toEqualTypeOf<{ total: number }>();
    // @ts-expect-error: the task takes items.
    await w.step(price, { item: 1 });
    expectTypeOf(await w.call<{ score: number }>("risk", 1)).toEqualTypeOf<{ score: number }>();
    expectTypeOf(await w.call("risk", 1)).toBeUnknown();
    expectTypeOf(await w.run(billing, { total: 1 })).toBeString();
    // @ts-expect-error: the workflow takes a total.
    await w.run(billing, { sum: 1 });
    expectTypeOf(await w.run<number>("by-name", null)).toBeNumber();
    expectTypeOf(await w.map([{ items: ["a"] }], price, { concurrency: 2 })).toEqualTypeOf<{ total: number }[]>();
    // @ts-expect-error: the items are not what the task takes.
    await w.map([1], price);
    expectTypeOf(await w.map([1, 2], async (item, at) => `${item}-${at}`)).toEqualTypeOf<string[]>();
    expectTypeOf(await w.signal("approve", { schema: approval, timeout: "2d" })).toEqualTypeOf<{ ok: boolean }>();
    for await (const value of w.signals("item", { schema: approval })) expectTypeOf(value).toEqualTypeOf<{ ok: boolean }>();
    expectTypeOf(await w.local("rate", () => 0.5)).toBeNumber();
    // Results are stored as JSON, so a date arrives as text.
    expectTypeOf(await w.local("at", () => ({ at: new Date() }))).toEqualTypeOf<{ at: string }>();
    expectTypeOf(await w.step(receive, null)).toEqualTypeOf<{ at: string }>();
    expectTypeOf(await w.run(receiving, null)).toEqualTypeOf<{ at: string }>();
    expectTypeOf(w.cancelled).toEqualTypeOf<AbortSignal>();
    expectTypeOf(w.continueAs).returns.toBeNever();
  };
  expectTypeOf(use).toBeFunction();
  expectTypeOf(billing.types).toEqualTypeOf<{ input: { total: number }; output: string } | undefined>();
});
