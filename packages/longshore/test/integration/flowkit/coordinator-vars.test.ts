import { describe, expect, it } from "vitest";
import { fn, node } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

describe("variables", () => {
  it.each([
    ["gold", 5, { ab: false, beta: true }, 3],
    ["silver", 9, { ab: true, beta: false }, 7],
  ])("[T29] are set, merged, increased and unset along a chain (%s)", async (sla, max, flags, by) => {
    const world = await openFlowkit();
    const run = await world.submit({
      nodes: [
        fn("n1", "vars.set", { kv: { "routing.sla": sla, "limits.max_batches": max } }),
        fn("n2", "vars.merge", { data: { flags } }, ["n1"]),
        fn("n3", "vars.incr", { key: "counters.pages", by }, ["n2"]),
        fn("n4", "vars.unset", { keys: ["limits.max_batches"] }, ["n3"]),
      ],
    });
    // Everything happens in the transaction that starts the run, so no time passes between two steps.
    expect(await world.ended(run)).toMatchObject({ state: "succeeded" });
    expect(await world.vars(run)).toEqual({ routing: { sla }, flags, counters: { pages: by } });
    const records = await world.engine.reader.heads(run.id);
    expect(records.map(({ state }) => state)).toEqual(["done", "done", "done", "done"]);
  });

  it.each([
    [["a.b"], { e: { f: 3 }, c: { d: 2 } }],
    [["a.b", "c.d", "missing.x"], { e: { f: 3 } }],
  ])("[T30] are unset by a list of keys, with what is empty then (%j)", async (keys, left) => {
    const world = await openFlowkit();
    const run = await world.submit({
      nodes: [fn("set", "vars.set", { kv: { "a.b": 1, "c.d": 2, "e.f": 3 } }), fn("unset", "vars.unset", { keys }, ["set"])],
    });
    await world.ended(run);
    expect(await world.vars(run)).toEqual(left);
    expect(JSON.parse((await world.task(run, "unset"))?.output ?? "")).toMatchObject({ ok: true, touched: keys.length });
  });

  it("[T31] are kept when the task is cancelled", async () => {
    const world = await openFlowkit();
    await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [fn("set", "vars.set", { kv: { a: 1 } }), node("long", "indexer", { depends_on: ["set"] })] });
    await world.inState(run, "long", "offered");
    await world.coordinator.tasks.cancel(run.id, "enough");
    expect(await world.ended(run)).toMatchObject({ state: "cancelled", error: "enough" });
    expect(await world.vars(run)).toEqual({ a: 1 });
  });

  // The reference has no such rule yet; ours is a condition on the node.
  it("[T32] decide which nodes run", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["mark"], { capacity: 2 });
    const branch = (id: string, equals: string) => node(id, "mark", { depends_on: ["set"], when: { var: "routing.sla", equals } });
    const run = await world.submit({
      nodes: [fn("set", "vars.set", { kv: { "routing.sla": "gold" } }), branch("gold_only", "gold"), branch("silver_only", "silver")],
    });
    await worker.done(await worker.accept());
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(worker.commands.map(({ node_id }) => node_id)).toEqual(["gold_only"]);
    expect(await world.task(run, "silver_only")).toMatchObject({ state: "skipped" });
  });

  it("[T33] are set when the next node starts", async () => {
    const seen: unknown[] = [];
    const echo = async (_args: object, { taskId }: { taskId: string }) => {
      seen.push(await world.vars(await world.run(taskId)));
      return null;
    };
    const world = await openFlowkit({ functions: { "vars.echo": echo } });
    const worker = await world.worker("w", ["echo"]);
    const run = await world.submit({
      nodes: [
        fn("n1", "vars.set", { kv: { "sla.level": "gold" } }),
        fn("n2", "vars.incr", { key: "hits" }, ["n1"]),
        fn("n3", "vars.echo", {}, ["n2"]),
        fn("n4", "vars.incr", { key: "hits" }, ["n3"]),
        node("child", "echo", { depends_on: ["n4"] }),
      ],
    });
    const command = await worker.accept();
    expect(seen).toEqual([{ sla: { level: "gold" }, hits: 1 }]);
    expect(await world.vars(run)).toEqual({ sla: { level: "gold" }, hits: 2 });
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("[T90] are increased exactly by fifteen nodes at once", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["tick"], { capacity: 15 });
    const ticks = Array.from({ length: 15 }, (_, at) => node(`t${at}`, "tick"));
    const incrs = ticks.map(({ node_id }, at) =>
      fn(`i${at}`, "vars.incr", { key: "counters.pages", by: at < 10 ? 1 : 2 }, [node_id as string]),
    );
    const run = await world.submit({ nodes: [...ticks, ...incrs] });
    const commands = [];
    for (const _ of ticks) commands.push(await worker.accept());
    await world.bus.publish(commands.map((command) => worker.record(command, "TASK_DONE", { metrics: {} })));
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.vars(run)).toEqual({ counters: { pages: 20 } });
  });

  it("fail the task when an old value has the wrong type", async () => {
    const world = await openFlowkit();
    const run = await world.submit({ nodes: [fn("set", "vars.set", { kv: { n: "A" } }), fn("incr", "vars.incr", { key: "n" }, ["set"])] });
    const { state, error } = await world.ended(run);
    expect([state, error]).toEqual([
      "failed",
      'step incr failed: vars.incr: fn_args.key names coordinator.vars.n, which is "A" and no number',
    ]);
  });
});
