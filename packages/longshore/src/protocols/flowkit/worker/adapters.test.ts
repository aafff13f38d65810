// How a worker on the embedded bus gets its batches when the coordinator names an adapter, and when it names none.

import { describe, expect, it } from "vitest";
import { cmd, pull, rechunk, setup, upstream } from "../../../../test/support/flowkit-probe.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { Batch } from "../wire/batch.ts";

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
