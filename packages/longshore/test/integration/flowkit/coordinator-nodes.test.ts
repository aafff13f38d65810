// The coordinator on the embedded bus, with the test as the workers: how nodes begin, stream and end.

import { describe, expect, it } from "vitest";
import { fn, node, pulls, statsOf, sumOf } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

describe("a node", () => {
  it("[A12] of a graph without status and epoch is started, streams its batches and ends with its metrics", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w1", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { io: { input_inline: { total: 3 } } })] });
    const command = await worker.accept();
    expect(command).toMatchObject({
      v: 1,
      msg_type: "cmd",
      role: "coordinator",
      task_id: run.id,
      node_id: "a",
      step_type: "indexer",
      attempt_epoch: 1,
      payload: { cmd: "TASK_START", input_ref: null, input_inline: { total: 3 }, batching: null, cancel_token: expect.any(String) },
    });
    await worker.batch(command, "b0", { count: 2 });
    await worker.batch(command, "b1", { count: 1 });
    await worker.done(command, { total: 3 });
    expect(await world.ended(run)).toMatchObject({ state: "succeeded" });
    expect(await world.task(run, "a")).toMatchObject({ state: "done", holder: "w1", output: '{"total":3}' });
    expect(await world.partsOf(run, "a")).toEqual([{ count: 2 }, { count: 1 }]);
    expect(world.warnings).toEqual([]);
  });

  it("[T27, T80] starts with the first batch of its upstream when configured, otherwise after its end", async () => {
    const world = await openFlowkit();
    const up = await world.worker("up", ["indexer"]);
    const down = await world.worker("down", ["analyzer"], { capacity: 2 });
    const nodes = [node("u", "indexer"), node("early", "analyzer", pulls(["u"])), node("late", "analyzer", pulls(["u"], "ready"))];
    const run = await world.submit({ nodes });
    const source = await up.accept();
    await world.inState(run, "u", "held");
    expect(await world.task(run, "early")).toBeUndefined();
    await up.batch(source, "b0", { n: 1 });
    const early = await down.accept();
    expect(early.node_id).toBe("early");
    expect(await world.task(run, "u")).toMatchObject({ state: "held" });
    expect(await world.task(run, "late")).toBeUndefined();
    await up.done(source);
    const late = await down.accept();
    expect(late.node_id).toBe("late");
    await down.done(early);
    await down.done(late);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("[T28] without start_when waits for the end of its upstream, also when it streams", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"], { capacity: 2 });
    const run = await world.submit({ nodes: [node("u", "indexer"), node("d", "indexer", { depends_on: ["u"] })] });
    const source = await worker.accept();
    for (let at = 0; at < 3; at++) await worker.batch(source, `b${at}`, {});
    await world.until(async () => (await world.partsOf(run, "u")).length === 3);
    expect(await world.task(run, "d")).toBeUndefined();
    await worker.done(source);
    expect((await worker.accept()).node_id).toBe("d");
  });

  it("starts along an edge with on_batch, also when it depends on other nodes", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"], { capacity: 3 });
    const nodes = [node("a", "indexer"), node("b", "indexer"), node("d", "indexer", { depends_on: ["a", "b"] })];
    await world.submit({ nodes, edges_ex: [{ from: "a", to: "d", mode: "async", trigger: "on_batch" }] });
    const [first, second] = [await worker.accept(), await worker.accept()];
    const source = first.node_id === "a" ? first : second;
    await worker.batch(source, "b0", {});
    expect((await worker.accept()).node_id).toBe("d");
  });

  it("[F-EMPTY-01] of an upstream that ends without a batch still starts", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer", "analyzer"], { capacity: 2 });
    const run = await world.submit({ nodes: [node("u", "indexer"), node("d", "analyzer", pulls(["u"]))] });
    await worker.done(await worker.accept());
    await worker.done(await worker.accept(), { count: 0 });
    expect((await world.ended(run)).state).toBe("succeeded");
  });
});

describe("fan-in", () => {
  const sources = ["u1", "u2", "u3"];

  async function three(target: ReturnType<typeof node>) {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer", "analyzer"], { capacity: 8 });
    const run = await world.submit({ nodes: [...sources.map((id) => node(id, "indexer")), target] });
    const commands = new Map<string, Awaited<ReturnType<typeof worker.accept>>>();
    for (let at = 0; at < 3; at++) {
      const command = await worker.accept();
      commands.set(command.node_id, command);
    }
    const of = (id: string) => commands.get(id) as Awaited<ReturnType<typeof worker.accept>>;
    return { world, worker, run, of };
  }

  it("[T74] any with first_batch starts with the first batch of one parent", async () => {
    const { worker, of, world, run } = await three(node("d", "analyzer", pulls(sources, "first_batch", { fan_in: "any" })));
    await worker.batch(of("u2"), "b0", {});
    expect((await worker.accept()).node_id).toBe("d");
    for (const id of sources) expect(await world.task(run, id)).toMatchObject({ state: "held" });
  });

  it("[T26] of three streams starts before all of them have ended", async () => {
    const { worker, of, world, run } = await three(node("d", "analyzer", pulls(sources)));
    await worker.batch(of("u1"), "b0", {});
    await worker.done(of("u1"));
    const down = await worker.accept();
    expect(down.node_id).toBe("d");
    expect(await world.task(run, "u3")).toMatchObject({ state: "held" });
    await worker.done(of("u2"));
    await worker.done(of("u3"));
    await worker.done(down);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("[T75] all waits for every parent", async () => {
    const { worker, of, world, run } = await three(node("d", "analyzer", pulls(sources, "ready")));
    await worker.done(of("u1"));
    await worker.done(of("u2"));
    await world.inState(run, "u2", "done");
    expect(await world.task(run, "d")).toBeUndefined();
    await worker.done(of("u3"));
    expect((await worker.accept()).node_id).toBe("d");
  });

  // The reference has no such rule yet. Here it counts first batches, just as first_batch alone means one.
  it("[T76] count:2 with first_batch starts with the first batches of two parents", async () => {
    const { worker, of, world, run } = await three(node("d", "analyzer", pulls(sources, "first_batch", { fan_in: "count:2" })));
    await worker.batch(of("u1"), "b0", {});
    await worker.batch(of("u1"), "b1", {});
    await world.until(async () => (await world.partsOf(run, "u1")).length === 2);
    expect(await world.task(run, "d")).toBeUndefined();
    await worker.batch(of("u3"), "b0", {});
    expect((await worker.accept()).node_id).toBe("d");
  });

  it("count:2 without first_batch starts after the end of two parents, and the third changes nothing", async () => {
    const { worker, of, world, run } = await three(node("d", "analyzer", { depends_on: sources, fan_in: "count:2" }));
    await worker.done(of("u1"));
    await worker.done(of("u3"));
    const down = await worker.accept();
    await worker.done(of("u2"));
    await worker.done(down);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(worker.commands).toHaveLength(4);
  });
});

describe("metrics", () => {
  it("[T18, T19] of tasks with equal node ids are separate, also when the tasks run at the same time", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"], { capacity: 4 });
    const graph = { nodes: [node("a", "indexer"), sumOf("a")] };
    const first = await world.submit(graph);
    const command = await worker.accept();
    await worker.batch(command, "b0", { count: 5 });
    await worker.done(command);
    expect(statsOf(await world.ended(first), "a")).toEqual({ count: 5 });
    const both = [await world.submit(graph), await world.submit(graph)];
    const commands = [await worker.accept(), await worker.accept()];
    for (const [at, one] of commands.entries()) {
      await worker.batch(one, "b0", { count: 10 * (at + 1) });
      await worker.batch(one, "b1", { count: 1 });
    }
    for (const one of commands) await worker.done(one);
    const sums = await Promise.all(both.map(async (run) => [run.id, statsOf(await world.ended(run), "a")]));
    expect(new Map(sums as [string, unknown][])).toEqual(
      new Map([
        [commands[0]?.task_id, { count: 11 }],
        [commands[1]?.task_id, { count: 21 }],
      ]),
    );
  });

  it("[T20, T67] are not counted twice when events arrive twice", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer"), sumOf("a")] });
    const command = await worker.accept();
    for (const [uid, count] of [
      ["b0", 4],
      ["b1", 5],
      ["b0", 4],
      ["b1", 5],
    ] as const)
      await worker.batch(command, uid, { count });
    await worker.done(command, { final: 1 });
    await worker.done(command, { final: 1 });
    await worker.batch(command, "b1", { count: 5 });
    expect(statsOf(await world.ended(run), "a")).toEqual({ count: 9, final: 1 });
    expect(await world.partsOf(run, "a")).toHaveLength(2);
  });

  it("[T21] are the same for any order of batches", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer"), sumOf("a")] });
    const command = await worker.accept();
    const lease = { lease_id: "l", lease_deadline_ts_ms: world.clock.now() + 60_000 };
    // One group of records, in which the final event is between the batches.
    await world.bus.publish([
      worker.record(command, "BATCH_OK", { batch_uid: "b2", metrics: { count: 3 } }),
      worker.record(command, "TASK_DONE", { metrics: {} }),
      worker.record(command, "BATCH_OK", { batch_uid: "b0", metrics: { count: 1 } }),
      worker.record(command, "TASK_HEARTBEAT", lease),
      worker.record(command, "BATCH_OK", { batch_uid: "b1", metrics: { count: 2 } }),
    ]);
    expect(statsOf(await world.ended(run), "a")).toEqual({ count: 6 });
  });

  it("[A09] of a batch that failed in one attempt and succeeded in the next are counted once", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 1, backoff_sec: 0 } }), sumOf("a")] });
    const first = await worker.accept();
    await worker.batch(first, "b0", { count: 5 });
    await worker.batchFailed(first, "b1", "flaky");
    await worker.failed(first, "flaky", false);
    const second = await worker.accept();
    expect(second.attempt_epoch).toBeGreaterThan(first.attempt_epoch);
    await worker.batch(second, "b0", { count: 5 });
    await worker.batch(second, "b1", { count: 7 });
    await worker.done(second);
    expect(statsOf(await world.ended(run), "a")).toEqual({ count: 12 });
  });

  it("are the mean of the numeric values when the graph requests this", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer"), sumOf("a", "mean")] });
    const command = await worker.accept();
    await worker.batch(command, "b0", { n: 1, text: "x", list: [1], yes: true });
    await worker.batch(command, "b1", { n: "2" });
    await worker.done(command);
    expect(statsOf(await world.ended(run), "a")).toEqual({ n: 1.5, yes: 1 });
  });
});

describe("functions of the coordinator", () => {
  it("[T35] merge without a worker: a complete result of the nodes' output, and the next node starts", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer", "analyzer"], { capacity: 2 });
    const merge = fn("m", "merge.generic", { from_nodes: ["u1", "u2"], target: { key: "merged" } }, ["u1", "u2"]);
    const run = await world.submit({
      nodes: [node("u1", "indexer"), node("u2", "indexer"), merge, node("sink", "analyzer", pulls(["m"]))],
    });
    for (let at = 0; at < 2; at++) {
      const command = await worker.accept();
      await worker.batch(command, "b0", { n: 1 });
      if (at === 1) await worker.batch(command, "b1", { n: 1 });
      await worker.done(command);
    }
    await worker.done(await worker.accept(), { count: 0 });
    expect((await world.ended(run)).state).toBe("succeeded");
    const { state, output } = (await world.task(run, "m")) as { state: string; output: string };
    expect(state).toBe("done");
    expect(JSON.parse(output)).toEqual({
      merged_from: ["u1", "u2"],
      complete_nodes: ["u1", "u2"],
      partial_batches: 3,
      distinct_batch_uids: 2,
      merged_at: expect.stringMatching(/^2020-01-01T/),
    });
  });

  it("of a user are called with their arguments, and retried when they throw", async () => {
    const calls: unknown[] = [];
    const mine = (args: object, { nodeId }: { nodeId: string }) => {
      calls.push([nodeId, args]);
      if (calls.length === 1) throw new Error("not yet");
      return { seen: calls.length };
    };
    const world = await openFlowkit({ functions: { mine } });
    const run = await world.submit({ nodes: [fn("f", "mine", { target: {}, a: 1 }, [], { retry_policy: { max: 1, backoff_sec: 0 } })] });
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(calls).toEqual([
      ["f", { target: { node_id: "f" }, a: 1 }],
      ["f", { target: { node_id: "f" }, a: 1 }],
    ]);
    expect((await world.task(run, "f"))?.output).toBe('{"seen":2}');
  });

  it("that keep failing fail the task with their error", async () => {
    const world = await openFlowkit({
      functions: {
        mine: () => {
          throw new Error("no such table");
        },
      },
    });
    const run = await world.submit({ nodes: [fn("f", "mine", {}, [], { retry_policy: { max: 0 } })] });
    expect(await world.ended(run)).toMatchObject({ state: "failed", error: expect.stringContaining("no such table") });
  });
});
