// Maps on a real store, under a clock that the test owns.

import { describe, expect, it } from "vitest";
import { openRunWorld } from "../../../../test/support/run-world.ts";
import type { Json } from "../../../core/json/json.ts";
import { task } from "../../../core/task.ts";
import { type GraphBuilder, graph } from "../../../graph.ts";
import type { Ref } from "../../../reference.ts";
import { codeDialect } from "./dialect.ts";

interface Given {
  items: number[];
  factor: number;
}

const square = task("square", async (n: Json) => n);
const pair = task("square", async (numbers: number[]) => numbers);
const report = task("report", async (results: unknown) => results);

/** A run of a graph whose builder maps over `items` of its input. */
async function started(build: (g: GraphBuilder, input: Ref<Given>) => unknown, input: { items: unknown; factor?: number }) {
  const world = await openRunWorld({ dialects: [codeDialect] });
  const { source } = graph("w", build);
  await world.runs.define({ name: "w", dialect: "code", source: JSON.stringify(source) });
  const { run } = await world.runs.start({ workflow: "w", input: JSON.stringify(input) });
  await world.settle();
  const state = async () => {
    const { state, output, error } = (await world.runs.run(run.id)) as NonNullable<Awaited<ReturnType<typeof world.runs.run>>>;
    return { state, output: output === null ? null : JSON.parse(output), error };
  };
  /** Takes one task and reports on it; undefined when there is none. */
  const work = async (end: (input: Json) => Json | Error = (input) => input, lane = "square") => {
    const taken = await world.poll(lane);
    if (taken === undefined) return undefined;
    const hold = { taskId: taken.id, grant: taken.grant };
    const result = end(JSON.parse(taken.input));
    if (result instanceof Error) await world.board.fail(hold, { error: result.message, retryable: false });
    else await world.board.complete(hold, JSON.stringify(result));
    await world.settle();
    return taken;
  };
  const workAll = async (end?: (input: Json) => Json | Error) => {
    const inputs: Json[] = [];
    for (let taken = await work(end); taken !== undefined; taken = await work(end)) inputs.push(JSON.parse(taken.input));
    return inputs;
  };
  return { world, run, state, work, workAll };
}

const squares = (input: Json) => (input as number) ** 2;

describe("a map", () => {
  it("has the results of its items in order, for any order of ends", async () => {
    const { world, state } = await started((g, input) => g.map(input.items, square), { items: [1, 2, 3] });
    const taken = [await world.poll("square"), await world.poll("square"), await world.poll("square")];
    for (const each of taken.reverse()) {
      await world.board.complete(
        { taskId: each?.id as string, grant: each?.grant as number },
        String(squares(JSON.parse(each?.input as string))),
      );
    }
    await world.settle();
    expect(await state()).toEqual({ state: "succeeded", output: [1, 4, 9], error: null });
  });

  it("of no items has no results, and ends at once", async () => {
    const { state } = await started((g, input) => g.map(input.items, square), { items: [] });
    expect(await state()).toMatchObject({ state: "succeeded", output: [] });
  });

  it("passes its results on to the next step", async () => {
    const { work, workAll, state } = await started((g, input) => g.step(report, { all: g.map(input.items, square) }), {
      items: [2, 3],
    });
    await workAll(squares);
    expect(JSON.parse((await work(undefined, "report"))?.input as string)).toEqual({ all: [4, 9] });
    expect((await state()).state).toBe("succeeded");
  });

  it("makes the input of each task from its item, its index and the shared values", async () => {
    const { workAll } = await started(
      (g, input) =>
        g.map(input.items as unknown as Ref<{ n: number }[]>, square, {
          input: (item, index) => ({ n: item.n, index, factor: input.factor, plain: { $ref: "mine" } }),
        }),
      { items: [{ n: 5 }, { n: 6 }], factor: 7 },
    );
    expect(await workAll()).toEqual([
      { n: 5, index: 0, factor: 7, plain: { $ref: "mine" } },
      { n: 6, index: 1, factor: 7, plain: { $ref: "mine" } },
    ]);
  });

  it("never treats its data as references", async () => {
    const odd = [{ $ref: { path: ["factor"] } }, { $value: { a: 1 } }, { $ref: { item: "value", path: [] } }];
    const { workAll, state } = await started((g, input) => g.map(input.items, square), { items: odd, factor: 7 });
    expect(await workAll()).toEqual(odd);
    expect((await state()).output).toEqual(odd);
  });

  it("keeps numbers exactly", async () => {
    const world = await openRunWorld({ dialects: [codeDialect] });
    const { source } = graph("w", (g, input: Ref<Given>) => g.map(input.items, square));
    await world.runs.define({ name: "w", dialect: "code", source: JSON.stringify(source) });
    const { run } = await world.runs.start({ workflow: "w", input: '{"items":[12345678901234567890,0.1234567890123456789]}' });
    await world.settle();
    for (const expected of ["12345678901234567890", "0.1234567890123456789"]) {
      const taken = await world.poll("square");
      expect(taken?.input).toBe(expected);
      await world.board.complete({ taskId: taken?.id as string, grant: taken?.grant as number }, expected);
    }
    await world.settle();
    expect((await world.runs.run(run.id))?.output).toBe("[12345678901234567890,0.1234567890123456789]");
  });

  it.each([
    [5, "it maps over 5, expected a list"],
    [{ length: 1 }, 'it maps over {"length":1}, expected a list'],
    [Array.from({ length: 20_001 }, () => 0), "it maps over 20001 items, at most 20000 are allowed"],
  ])("fails for data that is not a list, or too long a one", async (items, message) => {
    const { state } = await started((g, input) => g.map(input.items, square), { items });
    expect(await state()).toMatchObject({ state: "failed", error: `step square failed: ${message}` });
  });

  it("fails when an item has no such field", async () => {
    const { state } = await started(
      (g, input) => g.map(input.items as unknown as Ref<{ n: number }[]>, square, { input: (item) => item.n }),
      { items: [{ n: 1 }, { m: 2 }] },
    );
    expect(await state()).toMatchObject({ state: "failed", error: 'step square failed: item 1 failed: item 1 has nothing at "n"' });
  });

  it("is skipped with `when`, and its step's name is its own", async () => {
    const { world, run, state } = await started((g, input) => void g.map(input.items, square, { id: "all", when: false }), {
      items: [1],
    });
    expect(world.rows(run.id).map(({ step, state }) => [step, state])).toEqual([["all", "skipped"]]);
    expect((await state()).state).toBe("succeeded");
  });
});

describe("a map in which an item fails", () => {
  const four = { items: [1, 2, 3, 4] };
  const boom = (input: Json) => (input === 2 ? new Error("boom") : squares(input));

  it("fails, and cancels the others", async () => {
    const { world, state, work } = await started((g, input) => g.map(input.items, square), four);
    await work(squares);
    const held = await world.poll("square");
    const third = await world.poll("square");
    await world.board.fail({ taskId: held?.id as string, grant: held?.grant as number }, { error: "boom", retryable: true });
    await world.settle();
    expect(await state()).toEqual({ state: "failed", output: null, error: "step square failed: item 1 failed: boom" });
    expect(await world.poll("square")).toBeUndefined();
    expect((await world.board.extend({ taskId: third?.id as string, grant: third?.grant as number })).verdict).toBe("cancel");
  });

  it("tries the item again as the options say", async () => {
    const retry = { limit: 1, backoff: { kind: "fixed" as const, delayMs: 0 } };
    const { world, work, workAll, state } = await started((g, input) => g.map(input.items, square, { retry }), four);
    const held = await world.poll("square");
    await world.board.fail({ taskId: held?.id as string, grant: held?.grant as number }, { error: "boom", retryable: true });
    expect(await workAll(squares)).toHaveLength(4);
    expect(await work()).toBeUndefined();
    expect(await state()).toMatchObject({ state: "succeeded", output: [1, 4, 9, 16] });
  });

  it("keeps the results of the others when its run is retried", async () => {
    const { world, run, state, workAll } = await started((g, input) => g.map(input.items, square), four);
    expect(await workAll(boom)).toEqual([1, 2]);
    await world.runs.retry(run.id);
    await world.settle();
    expect(await workAll(squares)).toEqual([2, 3, 4]);
    expect(await state()).toMatchObject({ state: "succeeded", output: [1, 4, 9, 16] });
  });

  it("times out with the reason of the item", async () => {
    const { world, state } = await started((g, input) => g.map(input.items, square, { timeout: "5s" }), four);
    await world.poll("square");
    await world.clock.advance(5_000);
    await world.settle();
    expect(await state()).toMatchObject({
      state: "failed",
      error: "step square failed: item 0 failed: timed out: the attempt took too long",
    });
    expect(await world.poll("square")).toBeUndefined();
  });

  it("ends with its run", async () => {
    const { world, run } = await started((g, input) => g.map(input.items, square), four);
    await world.runs.cancel(run.id);
    await world.settle();
    expect(await world.poll("square")).toBeUndefined();
    expect(world.allRuns().map(({ state }) => state)).toEqual(["cancelled", "cancelled"]);
  });

  it("times out as a whole", async () => {
    const { world, state, work } = await started((g, input) => g.map(input.items, square, { totalTimeout: "1m" }), four);
    await work(squares);
    await world.clock.advance(60_000);
    await world.settle();
    expect(await state()).toMatchObject({ state: "failed", error: "step square failed: timed out: the task took too long" });
    expect(await world.poll("square")).toBeUndefined();
  });
});

describe("the concurrency of a map", () => {
  it("limits how many of its tasks are held, but not those of another map", async () => {
    const { world, state, workAll } = await started(
      (g, input) => [g.map(input.items, square, { concurrency: 2 }), g.map(input.items, square, { id: "other", concurrency: 1 })],
      { items: [1, 2, 3] },
    );
    const taken = [];
    for (let next = await world.poll("square"); next !== undefined; next = await world.poll("square")) taken.push(next);
    expect(taken.map(({ runId }) => runId?.includes("-0-"))).toEqual([true, true, false]);
    for (const { id, grant, input } of taken) await world.board.complete({ taskId: id, grant }, input);
    await world.settle();
    await workAll();
    expect(await state()).toMatchObject({
      state: "succeeded",
      output: [
        [1, 2, 3],
        [1, 2, 3],
      ],
    });
  });
});

describe("a long map", () => {
  const items = Array.from({ length: 1_201 }, (_, at) => at);

  it("is cut into parts that share its concurrency, and its results are one list", async () => {
    const { world, state } = await started(
      (g, input) => g.map(input.items, pair, { concurrency: 600, input: (item, index) => [item, index] }),
      { items },
    );
    for (let left = items.length; left > 0; ) {
      const taken = await world.board.claim({ reach: { names: ["square"], labels: [] }, holder: "w", termMs: 60_000, max: 1_000 });
      expect(taken.length).toBe(Math.min(left, 600));
      for (const { id, grant, input } of taken) await world.board.complete({ taskId: id, grant }, input);
      left -= taken.length;
      await world.settle();
    }
    expect(await state()).toMatchObject({ state: "succeeded", output: items.map((item) => [item, item]) });
    expect(world.allRuns().map(({ workflow, state }) => [workflow, state])).toEqual([
      ["w", "succeeded"],
      ["w/square", "succeeded"],
      ["w/square/0-499", "succeeded"],
      ["w/square/500-999", "succeeded"],
      ["w/square/1000-1200", "succeeded"],
    ]);
  });

  it("ends with the first failure, names the item, and keeps what is done over a retry", async () => {
    const { world, run, state, workAll } = await started((g, input) => g.map(input.items, square), { items });
    const first = await workAll((input) => (input === 700 ? new Error("boom") : input));
    expect(await state()).toMatchObject({ state: "failed", error: "step square failed: item 700 failed: boom" });
    expect(world.allRuns().every(({ endedAt }) => endedAt !== null)).toBe(true);
    await world.runs.retry(run.id);
    await world.settle();
    const second = await workAll();
    expect(new Set([...first, ...second]).size).toBe(items.length);
    expect(first.length + second.length).toBe(items.length + 1);
    expect(await state()).toMatchObject({ state: "succeeded", output: items });
  });

  it("continues over a restart of the server", async () => {
    const { world, state, work, workAll } = await started((g, input) => g.map(input.items, square), { items });
    for (let at = 0; at < 10; at++) await work();
    await world.restart();
    await workAll();
    expect(await state()).toMatchObject({ state: "succeeded", output: items });
  });
});
