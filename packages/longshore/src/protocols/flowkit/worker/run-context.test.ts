import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import { deferred } from "../../../../test/support/until.ts";
import type { RunContext } from "./run-context.ts";
import { streamTask } from "./stream-task.ts";

/** Runs one batch with the given handler. */
async function within(use: (ctx: RunContext) => unknown) {
  const world = await flowkitWorld();
  await world.worker([streamTask("probe", { processBatch: async (_batch, ctx) => use(ctx) })], { workerId: "w-1" });
  await world.start(null, { epoch: 2 });
  const end = await world.end("n", 2);
  return { world, end };
}

describe("the context of a run", () => {
  it("has its ids and names, in either spelling", async () => {
    const { world, end } = await within((ctx) => ({
      names: [ctx.task_id, ctx.node_id, ctx.attempt_epoch, ctx.worker_id],
      same: [ctx.taskId, ctx.nodeId, ctx.attemptEpoch, ctx.workerId],
      ids: ctx.ids,
      cancelled: [ctx.cancelled(), ctx.cancel_reason, ctx.cancel_deadline_ts_ms, ctx.remaining_ms()],
      now: ctx.clock.now_ms() > 0 && ctx.clock.now_dt() instanceof Date && ctx.clock.mono_ms() > 0,
      native: ctx.native,
    }));
    expect(end.payload.kind).toBe("TASK_DONE");
    const { metrics } = (await world.event("BATCH_OK")).payload;
    expect(metrics).toMatchObject({
      names: [world.taskId, "n", 2, "w-1"],
      same: [world.taskId, "n", 2, "w-1"],
      ids: { runId: world.taskId, stepId: "n", grantId: `${world.taskId}:n:2` },
      cancelled: [false, null, null, null],
      now: true,
      native: { step_type: "probe", worker_id: "w-1", attempt_epoch: 2 },
    });
  });

  it("stores partial artifacts and final metrics of the handler", async () => {
    const { world, end } = await within(async (ctx) => {
      const ref = await ctx.artifacts.upsert_partial("extra", { rows: 7 });
      await ctx.artifacts.mark_complete({ rows: 7 });
      await expect(ctx.artifacts.upsert_partial("", {})).rejects.toThrow("needs a batch_uid");
      return ref;
    });
    expect(world.artifacts.node(world.taskId, "n").parts.get("extra")).toEqual({ rows: 7 });
    expect(end.payload.metrics).toEqual({ rows: 7 });
  });

  it("runs programs and returns their exit code", async () => {
    const { world } = await within(async (ctx) => ({
      codes: [await ctx.run_subprocess([process.execPath, "-e", "process.exit(3)"]), await ctx.runSubprocess(["true"])],
    }));
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ codes: [3, 0] });
  });

  it("a program ends when its run is cancelled", async () => {
    const world = await flowkitWorld();
    const started = deferred<void>();
    const slow = streamTask("probe", {
      processBatch: async (_batch, ctx) => {
        const running = ctx.run_subprocess(["sleep", "600"], { grace_ms: 100 });
        started.resolve();
        return running;
      },
    });
    await world.worker([slow], { workerId: "w-1" });
    await world.start();
    await started.promise;
    await world.cancel("enough", "w-1");
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "enough" });
  });

  it("cleans up in reverse order, also when parts of it fail, and removes files", async () => {
    const order: string[] = [];
    const path = mkdtempSync(join(tmpdir(), "longshore-run-"));
    writeFileSync(join(path, "file"), "x");
    await within((ctx) => {
      ctx.register_temp_path(path);
      ctx.on_cleanup(() => order.push("first"));
      ctx.onCleanup(() => {
        throw new Error("no matter");
      });
      ctx.on_cleanup(async () => order.push("last"));
      return {};
    });
    expect(order).toEqual(["last", "first"]);
    expect(existsSync(path)).toBe(false);
  });
});
