// What a worker reads through the adapters: artifacts of other nodes, in whole or in pieces, in every attempt.

import { describe, expect, it } from "vitest";
import { cmd, pull, rechunk, setup, upstream } from "../../../../test/support/flowkit-probe.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import type { Batch } from "../wire/batch.ts";

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
  it("[F-EMPTY-01, T06] an empty upstream is not an error", async () => {
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
