import { describe, expect, it } from "vitest";
import { task } from "../../../core/task.ts";
import { Loopback } from "../../../testing/loopback.ts";
import { work } from "../../../work.ts";
import { Batch } from "../wire/batch.ts";
import { isStreamTask, streamTask } from "./stream-task.ts";

async function run(subject: ReturnType<typeof streamTask>, input: unknown) {
  const loop = new Loopback({ capabilities: { streams: false } });
  await using _worker = await work({ tasks: [subject], on: loop, signals: false, logger: false });
  return await loop.run(subject.name, input as never);
}

describe("a task of batches on another protocol", () => {
  it("makes its batches itself; its output is its final metrics and the number of batches", async () => {
    const sum = streamTask("sum", {
      *iterBatches({ input_inline }) {
        for (const at of (input_inline as { list: number[] }).list) yield new Batch({ batch_uid: `b${at}`, payload: { at } });
      },
      processBatch: ({ payload }, ctx) => {
        ctx.kv.sum = ((ctx.kv.sum as number | undefined) ?? 0) + (payload.at as number);
        return { at: payload.at };
      },
      finalize: (ctx) => ({ sum: ctx.kv.sum }),
    });
    expect(await run(sum, { list: [1, 2, 3] })).toEqual({ kind: "done", output: { sum: 6, batches: 3 } });
  });

  it("reads the reference of a graph node, and its adapter with arguments", async () => {
    const subject = streamTask("node", { processBatch: ({ payload }) => ({ items: payload.items }) });
    const loop = new Loopback({ capabilities: { streams: true } });
    await using _worker = await work({ tasks: [subject], on: loop, signals: false, logger: false });
    const args = { from_node: "u", size: 2, meta_list_key: "skus" };
    const input_inline = { input_adapter: "pull.from_artifacts.rechunk:size", input_args: args };
    const parts = { u: [{ uid: "p1", value: { skus: [1, 2, 3] } }] };
    const outcome = await loop.run("node", { input_ref: null, input_inline, batching: null }, { parts });
    expect(outcome).toMatchObject({ kind: "done", output: { batches: 2 } });
  });

  it("gives a generator its input as one batch", async () => {
    const twice = streamTask("twice", async function* (batches) {
      for await (const { payload } of batches) yield payload;
      return { ok: true };
    });
    expect(await run(twice, { a: 1 })).toEqual({ kind: "done", output: { ok: true, batches: 1 } });
  });

  it.each([
    [{ page: 1 }, 'A batch has the field "page", expected { batch_uid: "...", payload: { ... } }'],
    [7, "A batch is of the type number, expected"],
    [null, "A batch is null, expected"],
  ])("an invalid batch fails permanently and is named: %j", async (given, told) => {
    const lossy = streamTask("lossy", { iterBatches: () => [given] as never, processBatch: () => ({}) });
    expect(await run(lossy, {})).toMatchObject({ kind: "failed", retryable: false, error: { message: expect.stringContaining(told) } });
  });

  it("fails finally when its error is permanent, and refuses an adapter without a store", async () => {
    const bad = streamTask("bad", {
      processBatch: () => {
        throw new TypeError("no");
      },
    });
    expect(await run(bad, {})).toMatchObject({ kind: "failed", retryable: false, error: { message: expect.stringContaining("no") } });
    const pull = { input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } };
    expect(await run(streamTask("pull", { processBatch: () => ({}) }), pull)).toMatchObject({
      kind: "failed",
      retryable: false,
      error: { message: expect.stringContaining("does not support parts") },
    });
  });

  it("is distinguished from other tasks", () => {
    expect(isStreamTask(streamTask("a", { processBatch: () => ({}) }))).toBe(true);
    expect(isStreamTask(task("a", () => 1))).toBe(false);
  });

  it("is refused without anything that could process a batch", () => {
    for (const work of [undefined, {}, { processBatch: 7 }]) {
      expect(() => streamTask("probe", work as never)).toThrow(
        'The stream task "probe" has no processBatch, expected an object with that function, or an async generator over batches.',
      );
    }
  });
});
