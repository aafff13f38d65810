// How a worker on the embedded bus gets its batches when the coordinator names an adapter, and when it names none.

import { describe, expect, it } from "vitest";
import { type FlowkitWorld, flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { Batch, BatchResult } from "../wire/batch.ts";
import type { FlowkitOptions } from "./options.ts";
import { streamTask } from "./stream-task.ts";

const pull = "pull.from_artifacts";
const rechunk = "pull.from_artifacts.rechunk:size";

interface Probe {
  /** The adapter that the handler proposes. */
  readonly proposes?: JsonObject;
  readonly options?: FlowkitOptions;
}

/** Counts the items of its batches. */
async function setup({ proposes, options }: Probe = {}) {
  const world = await flowkitWorld();
  const seen: Batch[] = [];
  let iterated = 0;
  const probe = streamTask("probe", {
    loadInput: (ref, inline) => ({ input_ref: ref ?? {}, input_inline: proposes ?? inline ?? {} }),
    *iterBatches() {
      iterated++;
      yield new Batch({ batch_uid: "own1", payload: { items: [1, 2, 3] } });
      yield { batchUid: "own2", payload: { items: [4, 5] } };
    },
    processBatch: (batch) => {
      seen.push(batch);
      const { items } = batch.payload;
      return new BatchResult({ success: true, metrics: { count: Array.isArray(items) ? items.length : 1 } });
    },
  });
  await world.worker([probe], options);
  return { world, seen, iterated: () => iterated };
}

function upstream(world: FlowkitWorld, node: string, ...lists: number[][]): void {
  world.artifacts.produce(
    world.taskId,
    node,
    lists.map((skus) => ({ skus })),
  );
}

const cmd = (input_adapter: string, input_args: JsonObject): JsonObject => ({ input_adapter, input_args });

describe("the choice of the adapter", () => {
  it("[F-ADAPT-03, T01] a handler's adapter is used when the command names none", async () => {
    const { world, iterated } = await setup({ proposes: cmd(rechunk, { from_node: "u", size: 3, meta_list_key: "skus" }) });
    upstream(world, "u", [1, 2, 3, 4], [5, 6, 7, 8]);
    await world.start();
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect(world.sum("count")).toBe(8);
    expect(iterated()).toBe(0);
    expect(world.logged("worker.adapter.selected")).toMatchObject([{ source: "handler", io_source: "handler", name: rechunk }]);
  });

  it("[F-ADAPT-04, F-HAND-03, T02] without an adapter anywhere the handler makes its batches", async () => {
    const { world, iterated } = await setup();
    await world.start({ parameter: 1 });
    await world.end();
    expect(world.sum("count")).toBe(5);
    expect(iterated()).toBe(1);
    expect(world.logged("worker.handler.iter_batches_fallback")).toHaveLength(1);
  });

  it("[F-ADAPT-05, T03] an unknown adapter in the command fails the task permanently, before any batch is read", async () => {
    const { world, seen, iterated } = await setup();
    await world.start(cmd("pull.from_the_moon", {}));
    const { payload } = await world.end();
    expect(payload).toMatchObject({
      kind: "TASK_FAILED",
      reason_code: "bad_input_adapter",
      permanent: true,
      error: "unknown input_adapter 'pull.from_the_moon'",
    });
    expect([iterated(), seen.length]).toEqual([0, 0]);
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "TASK_FAILED"]);
    expect(world.logged("worker.adapter.unknown_from_cmd")).toMatchObject([{ level: "error", adapter: "pull.from_the_moon" }]);
  });

  it("[T16] an unknown adapter is also refused when the handler proposes a known one", async () => {
    const { world, iterated } = await setup({ proposes: cmd(pull, { from_node: "u" }) });
    await world.start(cmd("nope", {}));
    expect((await world.end()).payload).toMatchObject({ reason_code: "bad_input_adapter", permanent: true });
    expect(iterated()).toBe(0);
  });

  it("[F-ADAPT-02, T04] the command's adapter is used, with from_node as a list of one source", async () => {
    const { world, iterated } = await setup();
    upstream(world, "u", [1, 2, 3], [4, 5, 6], [7, 8, 9]);
    await world.start(cmd(rechunk, { from_node: "u", size: 2, meta_list_key: "skus" }));
    await world.end();
    expect(world.sum("count")).toBe(9);
    expect(iterated()).toBe(0);
    expect(world.artifacts.reads).toMatchObject([{ sources: ["u"] }]);
  });

  it("[F-ADAPT-09, T05] a handler's unknown adapter is ignored when the command's is valid", async () => {
    const { world } = await setup({ proposes: cmd("unknown.adapter", { x: 1 }) });
    upstream(world, "u", [1, 2], [3]);
    await world.start(cmd(rechunk, { from_nodes: ["u"], size: 2, meta_list_key: "skus" }));
    await world.end();
    expect(world.sum("count")).toBe(3);
  });

  it("[F-ADAPT-03] a handler's unknown adapter is ignored when the command names none", async () => {
    const { world, iterated } = await setup({ proposes: cmd("unknown.adapter", {}) });
    await world.start();
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect([iterated(), world.sum("count")]).toEqual([1, 5]);
  });

  it("[F-ADAPT-01, F-OBS-02, T17] the command's adapter overrides a different one of the handler, and the conflict is logged", async () => {
    const { world } = await setup({ proposes: cmd(rechunk, { from_node: "v", size: 2, meta_list_key: "skus" }) });
    upstream(world, "u", [1, 2, 3]);
    upstream(world, "v", [1], [2], [3], [4], [5]);
    await world.start(cmd(rechunk, { from_node: "u", size: 2, meta_list_key: "skus" }));
    await world.end();
    expect(world.sum("count")).toBe(3);
    // The reference logs a conflict only when the names differ. According to the guide, it must log each time the command overrides the
    // handler.
    expect(world.logged("worker.adapter.handler_conflict_ignored")).toMatchObject([
      { message: "handler_conflict_ignored", handler_adapter: rechunk, cmd_adapter: rechunk, handler_args: { from_node: "v" } },
    ]);
  });

  it("[F-ADAPT-01] the handler's arguments are not mixed with those of the command", async () => {
    const { world, seen } = await setup({ proposes: cmd(rechunk, { from_node: "v", size: 1, meta_list_key: "skus", poll_ms: 7 }) });
    upstream(world, "u", [1, 2, 3]);
    await world.start(cmd(rechunk, { from_node: "u", size: 2 }));
    await world.end();
    expect(seen.map(({ payload }) => payload.items)).toEqual([[{ skus: [1, 2, 3] }]]);
    expect(world.artifacts.reads).toMatchObject([{ sources: ["u"], options: { pollMs: 300 } }]);
  });

  it("[F-OBS-01] the chosen adapter is logged with its name, arguments and source; a handler with the same choice is no conflict", async () => {
    const { world } = await setup();
    upstream(world, "u", [1]);
    await world.start(cmd(pull, { from_nodes: ["u"], poll_ms: 50 }));
    await world.end();
    expect(world.logged("worker.adapter.selected")).toMatchObject([
      {
        message: "adapter.selected",
        name: pull,
        adapter: pull,
        args: { from_nodes: ["u"], poll_ms: 50 },
        source: "cmd",
        from_nodes: ["u"],
      },
    ]);
    expect(world.logged("worker.adapter.handler_conflict_ignored")).toEqual([]);
  });
});

// Our own coordinator refuses graphs with such arguments when they are submitted; the reference's sends them to its workers.
describe("arguments are checked before any batch is read", () => {
  async function refused(adapter: string, args: JsonObject, why: string) {
    const { world, iterated, seen } = await setup();
    await world.start(cmd(adapter, args));
    const { payload } = await world.end();
    expect(payload).toMatchObject({ kind: "TASK_FAILED", reason_code: "bad_input_args", permanent: true, error: why });
    expect([iterated(), seen.length]).toEqual([0, 0]);
    expect(world.logged("worker.adapter.validation_failed")).toMatchObject([{ adapter, io_source: "cmd", reason: why }]);
  }

  it("[F-ADAPT-06, T07] a missing size fails the task permanently, and the handler is not called", async () => {
    await refused(rechunk, { from_node: "u" }, "missing or invalid 'size' (positive int required)");
  });

  it("[F-ADAPT-06] arguments that the handler proposes are checked like those of the command", async () => {
    const { world, iterated } = await setup({ proposes: cmd(rechunk, { from_node: "u" }) });
    await world.start();
    const error = "missing or invalid 'size' (positive int required)";
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_FAILED", reason_code: "bad_input_args", permanent: true, error });
    expect(world.logged("worker.adapter.validation_failed")).toMatchObject([{ io_source: "handler", reason: error }]);
    expect(iterated()).toBe(0);
  });

  it("[T11] a size of 0 fails the task permanently", async () => {
    await refused(rechunk, { from_node: "u", size: 0 }, "missing or invalid 'size' (positive int required)");
  });

  it("[T12] a meta_list_key that is not a text fails the task permanently", async () => {
    await refused(rechunk, { from_node: "u", size: 2, meta_list_key: 7 }, "'meta_list_key' is 7, expected a text");
  });

  it("[A10] missing sources, extra arguments and invalid pauses fail the task permanently", async () => {
    await refused(pull, {}, "missing 'from_nodes' (at least one node id required)");
    await refused(pull, { from_node: "u", poll_ms: "abc" }, `'poll_ms' is "abc", expected milliseconds`);
    await refused(
      pull,
      { from_node: "u", bogus: 1 },
      "unknown argument 'bogus', expected from_nodes, from_node, poll_ms, eof_on_task_done, backoff_max_ms",
    );
  });

  it("[F-VAL-01, T10] a missing size fails before a live upstream is read", async () => {
    const { world, seen } = await setup();
    world.artifacts.produce(world.taskId, "u", [{ skus: [1, 2] }], false);
    await world.start(cmd(rechunk, { from_node: "u", meta_list_key: "skus" }));
    expect((await world.end()).payload).toMatchObject({ reason_code: "bad_input_args", permanent: true });
    expect(seen).toEqual([]);
    expect(world.artifacts.reads).toEqual([]);
  });

  it("[F-RECH-06, T14] a strict worker refuses rechunking without the key of a list", async () => {
    const { world } = await setup({ options: { strictInputAdapters: true } });
    await world.start(cmd(rechunk, { from_node: "u", size: 2 }));
    expect((await world.end()).payload).toMatchObject({
      ...{ kind: "TASK_FAILED", reason_code: "bad_input_args", permanent: true },
      error: "missing 'meta_list_key' (required by strict_input_adapters)",
    });
  });

  it("[T15] a strict worker accepts rechunking with the key of a list", async () => {
    const { world } = await setup({ options: { strictInputAdapters: true } });
    upstream(world, "u", [1, 2, 3]);
    await world.start(cmd(rechunk, { from_node: "u", size: 2, meta_list_key: "skus" }));
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect(world.sum("count")).toBe(3);
  });
});

describe("pulling from artifacts", () => {
  it("[F-PULL-01] batches arrive while the upstream still produces", async () => {
    const { world, seen } = await setup();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }], false);
    await world.start(cmd(pull, { from_nodes: ["u"] }));
    await world.event("BATCH_OK");
    expect(seen).toHaveLength(1);
    expect(seen[0]?.payload).toEqual({
      from_node: "u",
      ref: { task_id: world.taskId, node_id: "u", batch_uid: "u0" },
      meta: { a: 1 },
    });
    world.artifacts.produce(world.taskId, "u", [{ a: 2 }], true);
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect(seen.map(({ batch_uid }) => batch_uid)).toEqual(["u0", "u1"]);
    expect(world.artifacts.finishedBy(world.taskId, "n")).toEqual(["u u0", "u u1"]);
  });

  it("[F-PULL-02, F-RECH-02] the sources are polled at the interval of the arguments, else at the worker's interval", async () => {
    const { world } = await setup({ options: { pullPollMsDefault: 70, pullEmptyBackoffMsMax: 900 } });
    upstream(world, "u", [1]);
    upstream(world, "v", [2]);
    const ways: [string, JsonObject][] = [
      [pull, { from_nodes: ["u", "v"], poll_ms: 25, backoff_max_ms: 50 }],
      [rechunk, { from_node: "v", size: 1, poll_ms: 30 }],
      [pull, { from_node: "u" }],
    ];
    for (const [at, [adapter, args]] of ways.entries()) {
      await world.start(cmd(adapter, args), { nodeId: `n${at}` });
      await world.end(`n${at}`);
    }
    expect(world.artifacts.reads).toEqual([
      { sources: ["u", "v"], options: { pollMs: 25, backoffMaxMs: 50, eofOnTaskDone: true } },
      { sources: ["v"], options: { pollMs: 30, backoffMaxMs: 900, eofOnTaskDone: true } },
      { sources: ["u"], options: { pollMs: 70, backoffMaxMs: 900, eofOnTaskDone: true } },
    ]);
  });

  // The guide shows a count of 0. Without a batch there is no metric at all, in the reference and here, and this counts as 0.
  it("[F-EMPTY-01, T06] an empty upstream is no error", async () => {
    const { world, iterated } = await setup();
    upstream(world, "u");
    await world.start(cmd(pull, { from_nodes: ["u"] }));
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: {} });
    expect(iterated()).toBe(0);
    expect(world.sum("count")).toBe(0);
    expect(world.logged("worker.upstream.status")).toMatchObject([{ upstream_empty: true }]);
  });

  it("[T08] an empty upstream is also no error for rechunking", async () => {
    const { world, seen, iterated } = await setup();
    upstream(world, "u");
    await world.start(cmd(rechunk, { from_nodes: ["u"], size: 2, meta_list_key: "skus" }));
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect([iterated(), seen.length]).toEqual([0, 0]);
  });

  it("[A20] two sources that use the same names do not collide", async () => {
    const { world } = await setup();
    world.artifacts.produce(world.taskId, "ua", [{ a: 1 }]);
    world.artifacts.produce(world.taskId, "ub", [{ a: 2 }]);
    await world.start(cmd(pull, { from_nodes: ["ua", "ub"] }));
    await world.end();
    expect(world.events().flatMap(({ payload }) => payload.batch_uid ?? [])).toEqual(["ua:u0", "ub:u0"]);
  });

  it("[A20] two sources do not collide when their names and batches give the same joined text", async () => {
    const { world } = await setup();
    const sources = { a: "b:c", "a:b": "c", "a%3Ab": "c" };
    for (const [node, uid] of Object.entries(sources)) {
      world.artifacts.node(world.taskId, node).parts.set(uid, { of: node });
      world.artifacts.end(world.taskId, node, "complete");
    }
    await world.start(cmd(pull, { from_nodes: Object.keys(sources) }));
    await world.end();
    expect(world.artifacts.node(world.taskId, "n").parts.size).toBe(3);
  });

  it("[F-ADAPT-06] a source that is not a node of the task fails the task permanently, from the command or the handler", async () => {
    const { world } = await setup();
    world.artifacts.unknown.add("nobody");
    await world.start(cmd(pull, { from_nodes: ["nobody"] }));
    expect((await world.end()).payload).toMatchObject({
      kind: "TASK_FAILED",
      reason_code: "bad_input_args",
      permanent: true,
      error: `There is no node "nobody" in the task ${world.taskId}.`,
    });
  });

  it("[A19] an upstream that failed fails its consumer with a reason", async () => {
    const { world } = await setup();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }], false);
    world.artifacts.end(world.taskId, "u", "failed");
    await world.start(cmd(pull, { from_nodes: ["u"] }));
    expect((await world.end()).payload).toMatchObject({
      kind: "TASK_FAILED",
      reason_code: "upstream_failed",
      permanent: true,
      error: 'The upstream node "u" has failed.',
    });
  });
});

describe("rechunking", () => {
  const sizes = (seen: readonly Batch[]) => seen.map(({ payload }) => (payload.items as unknown[]).length);

  it("[F-RECH-01, F-RECH-03, T84] a named list is cut into pieces whose names derive from their artifact", async () => {
    const { world, seen } = await setup();
    world.artifacts.node(world.taskId, "u").parts.set("p0", { skus: [1, 2, 3, 4, 5] });
    world.artifacts.produce(world.taskId, "u", []);
    await world.start(cmd(rechunk, { from_node: "u", size: 2, meta_list_key: "skus" }));
    await world.end();
    expect(sizes(seen)).toEqual([2, 2, 1]);
    expect(seen[0]?.payload).toEqual({ from_node: "u", items: [1, 2], parent: { ref: { batch_uid: "p0" }, meta_list_key: "skus" } });
    expect(seen.map(({ batch_uid }) => batch_uid?.slice(0, 8))).toEqual(["5397bd2c", "b98797e6", "aac55e59"]);
  });

  it("[F-RECH-04, T85] without a key an artifact is one item", async () => {
    const { world, seen } = await setup();
    world.artifacts.produce(world.taskId, "u", [{ skus: [1, 2] }, { skus: [3] }]);
    await world.start(cmd(rechunk, { from_node: "u", size: 2 }));
    await world.end();
    expect(sizes(seen)).toEqual([1, 1]);
    expect(seen[0]?.payload).toMatchObject({ items: [{ skus: [1, 2] }], parent: { meta_list_key: null } });
  });

  it("[F-RECH-04] an artifact without a list under the key is one item, one with an empty list has none, and both are read once", async () => {
    const { world, seen } = await setup();
    world.artifacts.produce(world.taskId, "u", [{ skus: [] }, { skus: "notalist" }, {}]);
    await world.start(cmd(rechunk, { from_node: "u", size: 2, meta_list_key: "skus" }));
    await world.end();
    expect(seen.map(({ payload }) => payload.items)).toEqual([[{ skus: "notalist" }], [{}]]);
    expect(world.artifacts.finishedBy(world.taskId, "n")).toEqual(["u u0", "u u1", "u u2"]);
  });

  it("[F-ADAPT-08, F-RECH-05, T09] keys are never guessed: two artifacts are two items, also when they contain lists", async () => {
    const { world, seen } = await setup();
    const metas = [
      { skus: [1, 2, 3, 4], items: [1, 2, 3, 4, 5], data: [] },
      { skus: [5, 6, 7, 8], items: [6, 7, 8], data: [1, 2] },
    ];
    world.artifacts.produce(world.taskId, "u", metas);
    await world.start(cmd(rechunk, { from_node: "u", size: 3 }));
    await world.end();
    expect(world.sum("count")).toBe(2);
    expect(seen.map(({ payload }) => payload.items)).toEqual(metas.map((meta) => [meta]));
  });

  it("[F-BP-03, T13] without a key there is one item for each artifact; with a key, one for each item of the lists", async () => {
    const { world } = await setup();
    upstream(world, "u", [0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10]);
    await world.start(cmd(rechunk, { from_node: "u", size: 3 }));
    await world.end();
    expect(world.sum("count")).toBe(3);
    await world.start(cmd(rechunk, { from_node: "u", size: 3, meta_list_key: "skus" }), { nodeId: "m" });
    await world.end("m");
    expect(world.sum("count", "m")).toBe(11);
  });
});

describe("every attempt", () => {
  it("[F-OVR-06] makes the same batches with the same names from the same input, for any proposal of its handler", async () => {
    const { world, iterated } = await setup({ proposes: cmd(rechunk, { from_node: "v", size: 1 }) });
    world.artifacts.produce(world.taskId, "u", [{ skus: [1, 2, 3] }, { skus: [4] }]);
    const named: unknown[][] = [];
    for (const [nodeId, epoch] of [
      ["n", 1],
      ["m", 7],
    ] as const) {
      await world.start(cmd(rechunk, { from_node: "u", size: 2, meta_list_key: "skus" }), { nodeId, epoch });
      await world.end(nodeId, epoch);
      named.push(world.events(nodeId).flatMap(({ payload }) => payload.batch_uid ?? []));
    }
    expect(named[0]).toHaveLength(3);
    expect(named[1]).toEqual(named[0]);
    expect(iterated()).toBe(0);
  });

  it("[F-OVR-06] that cannot load its input reports this on the wire and in the log, and makes no batch", async () => {
    const { world, seen, iterated } = await setup({ proposes: cmd(pull, { from_node: "u" }) });
    upstream(world, "u", [1]);
    const wrong: [string, JsonObject, string][] = [
      ["nope", {}, "bad_input_adapter"],
      [rechunk, { from_node: "u" }, "bad_input_args"],
    ];
    for (const [at, [adapter, args, reason_code]] of wrong.entries()) {
      await world.start(cmd(adapter, args), { nodeId: `n${at}` });
      expect((await world.end(`n${at}`)).payload).toMatchObject({ kind: "TASK_FAILED", reason_code, permanent: true });
    }
    expect(world.logs.filter(({ level }) => level === "error").map(({ event }) => event)).toEqual([
      "worker.adapter.unknown_from_cmd",
      "worker.adapter.validation_failed",
    ]);
    expect([iterated(), seen.length, world.artifacts.reads.length]).toEqual([0, 0, 0]);
  });

  it("gets the batches that an earlier attempt has not finished, and no others", async () => {
    const { world } = await setup();
    world.artifacts.produce(world.taskId, "u", [{ skus: [1] }, { skus: [2] }]);
    const earlier = { taskId: world.taskId, nodeId: "n", epoch: 1, workerId: "w-0" };
    await world.artifacts.finish(earlier, [{ fromNode: "u", uid: "u0" }]);
    await world.start(cmd(pull, { from_node: "u" }), { epoch: 2 });
    await world.end("n", 2);
    expect(world.events().flatMap(({ payload }) => payload.batch_uid ?? [])).toEqual(["u1"]);
  });
});

describe("user-defined adapters", () => {
  it("are named in commands like the others, and check their own arguments", async () => {
    const range = {
      name: "range",
      check: (args: unknown) => {
        const { to } = (args ?? {}) as { to?: unknown };
        return typeof to === "number" ? { ok: true as const, args: to } : { ok: false as const, why: "missing 'to'" };
      },
      async *open(to: number) {
        for (let at = 0; at < to; at++) yield new Batch({ batch_uid: `r${at}`, payload: { items: [at] } });
      },
    };
    const { world } = await setup({ options: { adapters: [range] } });
    await world.start(cmd("range", { to: 4 }));
    await world.end();
    expect(world.sum("count")).toBe(4);
    await world.start(cmd("range", {}), { nodeId: "m" });
    expect((await world.end("m")).payload).toMatchObject({ reason_code: "bad_input_args", error: "missing 'to'" });
  });
});
