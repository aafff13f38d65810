// Ordinary tasks and generators as roles of a worker on the embedded bus.

import { describe, expect, it } from "vitest";
import { flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import { task } from "../../../core/task.ts";
import type { ReadBatch } from "../wire/batch.ts";
import { streamTask } from "./stream-task.ts";

describe("an ordinary task", () => {
  it("is a role with one batch: its output becomes the batch's metrics, and is sent unchanged at the end", async () => {
    const world = await flowkitWorld();
    await world.worker([task("probe", (input: { name: string }) => ({ greeting: `Hello ${input.name}` }))]);
    await world.start({ name: "Ada" });
    const { payload } = await world.end();
    expect(payload).toMatchObject({ kind: "TASK_DONE", metrics: {}, output: { greeting: "Hello Ada" } });
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ greeting: "Hello Ada" });
  });

  it("may return anything", async () => {
    const world = await flowkitWorld();
    await world.worker([task("probe", () => [1, 2])]);
    await world.start({});
    expect((await world.end()).payload.output).toEqual([1, 2]);
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ result: [1, 2] });
  });

  it("is called once for each batch of its adapter", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }]);
    await world.worker([task("probe", ({ meta }: { meta: { a: number } }) => ({ double: 2 * meta.a }))]);
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    await world.end();
    expect(world.sum("double")).toBe(6);
  });
});

describe("an ordinary task with parts", () => {
  it("sends each part as a batch, and its output summarises all of them", async () => {
    const world = await flowkitWorld();
    const emitting = task("probe", async (_input: unknown, ctx) => {
      await ctx.emit({ rows: 1 }, { uid: "first" });
      await ctx.emit({ rows: 2 });
      return { total: 3 };
    });
    await world.worker([emitting]);
    await world.start({});
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: { total: 3 }, output: { total: 3 } });
    expect(world.sum("rows")).toBe(3);
    expect((await world.event("BATCH_OK")).payload.batch_uid).toBe("first");
  });

  it("reads the parts of another node while they are produced", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }]);
    const reading = task("probe", async (_input: unknown, ctx) => {
      let sum = 0;
      for await (const { value } of ctx.parts("u")) sum += (value as { a: number }).a;
      return { sum };
    });
    await world.worker([reading]);
    await world.start({});
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", output: { sum: 3 } });
  });
});

describe("a generator over batches", () => {
  it("yields metrics, and marks batches as finished when the metrics are stored", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }, { a: 3 }]);
    const pairs = streamTask("probe", async function* (batches) {
      let sum = 0;
      let before: ReadBatch | undefined;
      for await (const batch of batches) {
        sum += (batch.payload.meta as { a: number }).a;
        if (before !== undefined) yield batch.result({ sum }, before);
        before = before === undefined ? batch : undefined;
      }
      return { total: sum };
    });
    await world.worker([pairs]);
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    expect((await world.end()).payload.metrics).toEqual({ total: 6 });
    expect((await world.event("BATCH_OK")).payload).toMatchObject({ batch_uid: "u1", metrics: { sum: 3 } });
    // The third batch was read, but there was no yield for it.
    expect(world.artifacts.finishedBy(world.taskId, "n")).toEqual(["u u0", "u u1"]);
  });

  it("may yield several times for one batch, with different names, and its errors fail the node", async () => {
    const world = await flowkitWorld();
    const twice = streamTask("probe", async function* (batches) {
      for await (const { payload } of batches) {
        yield { payload };
        yield { payload };
      }
      throw new RangeError("enough");
    });
    await world.worker([twice]);
    await world.start({ a: 1 });
    expect((await world.end()).payload).toMatchObject({ reason_code: "bad_input", error: "enough" });
    const uids = world.events().flatMap(({ payload }) => payload.batch_uid ?? []);
    expect(uids).toEqual([uids[0], `${uids[0]}.2`]);
  });
});
