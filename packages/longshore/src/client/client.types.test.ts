import { expect, expectTypeOf, it } from "vitest";
import { z } from "zod";
import { task } from "../core/task.ts";
import { graph } from "../graph.ts";
import type { wholeScheduleShape } from "../protocols/longshore/wire/schedule-shapes.ts";
import type { runShape } from "../protocols/longshore/wire/shapes.ts";
import type { Ref } from "../reference.ts";
import type { Server } from "../server/handle.ts";
import { workflow } from "../workflow.ts";
import type { Client, RunHandle, RunStatus } from "./client.ts";
import { connect } from "./connect.ts";
import type { ScheduleStatus } from "./schedule.ts";

const client: Client = connect("http://127.0.0.1:1");
const price = task("price", async (order: { items: number }) => ({ total: order.items * 2 }));
const order = workflow("order", async (w, input: { items: number }) => w.step(price, input));
const priced = graph("priced", (g, input: Ref<{ items: number }>) => g.step(price, input));
const checked = graph("checked", (g, input) => g.step(price, input), { input: z.object({ items: z.number().default(1) }) });

/** Never called: only its types are checked. */
async function typed(server: Server): Promise<void> {
  expectTypeOf(await client.start(order, { items: 1 })).toEqualTypeOf<RunHandle<{ total: number }>>();
  expectTypeOf(await (await client.start(priced, { items: 1 })).result()).toEqualTypeOf<{ total: number }>();
  expectTypeOf((await (await client.start(priced, { items: 1 })).status()).output).toEqualTypeOf<{ total: number } | null>();
  // @ts-expect-error a field is missing
  await client.start(order, {});
  // @ts-expect-error a field has another type
  await client.start(priced, { items: "two" });
  // With a schema, a start needs only the fields that the schema requires.
  await client.start(checked, {});

  expectTypeOf(await client.start("order", { any: "input" })).toEqualTypeOf<RunHandle<unknown>>();
  expectTypeOf(await (await client.start<{ total: number }>("order", 1)).result()).toEqualTypeOf<{ total: number }>();
  expectTypeOf(client.run<string>("id").result).returns.resolves.toEqualTypeOf<string>();

  expectTypeOf(await client.call(price, { items: 1 })).toEqualTypeOf<{ total: number }>();
  expectTypeOf(await client.call("price", 1)).toEqualTypeOf<unknown>();
  expectTypeOf(await client.call<{ total: number }>("price", 1)).toEqualTypeOf<{ total: number }>();
  expectTypeOf(await client.call<number, string>("named", 1)).toEqualTypeOf<string>();
  // @ts-expect-error another input
  await client.call(price, { item: 1 });

  expectTypeOf(server).toExtend<Client>();
  expectTypeOf(server.start(order, { items: 1 })).resolves.toEqualTypeOf<RunHandle<{ total: number }>>();
}

it("types runs by the workflow, or by name", () => {
  expect(typed).toBeInstanceOf(Function);
});

it("has the type of a schedule that the API documents", () => {
  type Documented = z.output<typeof wholeScheduleShape>;
  expectTypeOf<keyof ScheduleStatus>().toEqualTypeOf<keyof Documented>();
  expectTypeOf<ScheduleStatus>().toExtend<DeepReadonly<Documented>>();
  expectTypeOf<Documented>().toExtend<ScheduleStatus>();
});

type DeepReadonly<Value> = {
  readonly [Key in keyof Value]: Value[Key] extends object | null | undefined ? DeepReadonly<Value[Key]> : Value[Key];
};

it("has the type of a run that the API documents", () => {
  type Documented = z.output<typeof runShape>;
  expectTypeOf<keyof RunStatus>().toEqualTypeOf<keyof Documented>();
  expectTypeOf<RunStatus>().toExtend<DeepReadonly<Documented>>();
  expectTypeOf<Documented>().toExtend<RunStatus>();
});
