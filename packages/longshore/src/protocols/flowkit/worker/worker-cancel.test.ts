// How a run is cancelled: a worker on the embedded bus, with the test as its coordinator.

import { describe, expect, it } from "vitest";
import { counting } from "../../../../test/support/flowkit-counting.ts";
import { flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import { deferred, until } from "../../../../test/support/until.ts";
import { LongshoreError } from "../../../core/errors.ts";
import { TestClock } from "../../../testing/clock.ts";
import type { RunContext } from "./run-context.ts";
import { type StreamTask, streamTask } from "./stream-task.ts";

describe("cancelling", () => {
  /** A handler that waits in its second batch for its signal. */
  function waiting() {
    const started = deferred<RunContext>();
    const handler = counting(3, async ({ payload }, ctx) => {
      if (payload.at === 0) return {};
      started.resolve(ctx);
      return ctx.cancellable(new Promise(() => {}));
    });
    return { started: started.promise, handler };
  }

  /** Cancels the run during its first batch, then opens the gate of the handler: no other batch may be processed. */
  async function cancelInFirstBatch(handler: StreamTask, processed: readonly unknown[], gate: { resolve(): void }) {
    const world = await flowkitWorld();
    await world.worker([handler], { workerId: "w-1" });
    await world.start();
    await until(() => processed.length === 1);
    await world.cancel("enough", "w-1");
    await until(() => world.logged("worker.run.cancelling").length === 1);
    gate.resolve();
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "enough" });
    expect(processed).toEqual([0]);
  }

  it("[F-CANC-01, F-CANC-02, F-OVR-04] a signal reaches the handler inside its batch, and the run ends as cancelled", async () => {
    const world = await flowkitWorld();
    const { started, handler } = waiting();
    await world.worker([handler], { workerId: "w-1" });
    await world.start();
    const ctx = await started;
    await world.cancel("user_request", "w-2");
    await world.cancel("user_request", "w-1", { epoch: 2 });
    await world.cancel("user_request", "w-1", { deadlineMs: Date.now() + 60_000 });
    const { payload } = await world.end();
    expect(payload).toMatchObject({ kind: "CANCELLED", reason: "user_request", worker_id: "w-1" });
    expect([ctx.cancelled(), ctx.cancel_flag.is_set(), ctx.cancel_reason]).toEqual([true, true, "user_request"]);
    expect(ctx.remaining_ms()).toBeGreaterThan(0);
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "CANCELLED"]);
    expect(await world.artifacts.isComplete(world.taskId, "n")).toBe(false);
  });

  it("[F-CANC-01] the worker checks the signal between two batches, so the handler need not do this", async () => {
    const gate = deferred<void>();
    const processed: unknown[] = [];
    const deaf = counting(3, async ({ payload }) => {
      processed.push(payload.at);
      await gate.promise;
      return {};
    });
    await cancelInFirstBatch(deaf, processed, gate);
  });

  it("[F-CANC-01] batches that a handler makes after the cancel are not processed", async () => {
    const gate = deferred<void>();
    const processed: unknown[] = [];
    const slow = streamTask("probe", {
      async *iterBatches() {
        yield { batch_uid: "b0", payload: { at: 0 } };
        await gate.promise;
        yield { batch_uid: "b1", payload: { at: 1 } };
      },
      processBatch: ({ payload }) => {
        processed.push(payload.at);
        return {};
      },
    });
    await cancelInFirstBatch(slow, processed, gate);
  });

  it("[F-CANC-02] a run with a stop signal reports that it is cancelling as long as its handler runs", async () => {
    const world = await flowkitWorld();
    const gate = deferred<void>();
    const begun = deferred<void>();
    const deaf = counting(1, () => {
      begun.resolve();
      return gate.promise;
    });
    await world.worker([deaf], { workerId: "w-1" });
    await world.start();
    await begun.promise;
    expect(world.artifacts.states.get("w-1")?.state).toBe("running");
    await world.cancel("enough", "w-1");
    await until(() => world.artifacts.states.get("w-1")?.state === "cancelling");
    await world.discover();
    const { payload } = await world.find(({ topic }) => topic === "reply.tasks.v1");
    expect(payload).toMatchObject({ run_state: "cancelling", worker_id: "w-1", attempt_epoch: 1 });
    gate.resolve();
    expect((await world.end()).payload.kind).toBe("CANCELLED");
  });

  it("[F-CANC-03] the coordinator's flags in the database are checked", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    const { started, handler } = waiting();
    await world.worker([handler], { dbCancelPollMs: 500 }, { clock });
    await world.start();
    await started;
    await clock.advance(500);
    world.artifacts.flags.add(`${world.taskId}:n`);
    await clock.advance(500);
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "db_flag" });
  });

  it("[F-CANC-04] an attempt that was replaced by a later one is stopped inside its batch, when only the store reports this", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    const { started, handler } = waiting();
    await world.worker([handler], { dbCancelPollMs: 500 }, { clock });
    await world.start();
    const ctx = await started;
    // The worker writes nothing more that could be refused.
    await until(() => world.kinds().includes("BATCH_OK"));
    world.artifacts.node(world.taskId, "n").epoch = 2;
    await clock.advance(500);
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "lease_lost" });
    expect([ctx.signal.aborted, ctx.cancelReason, ctx.cancel_reason]).toEqual([true, "lease_lost", "lease_lost"]);
  });

  it("[F-CANC-04] a worker whose heartbeats fail for the length of a lease stops, and reports this when it can", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    const { started, handler } = waiting();
    await world.worker([handler], { leaseTtlSec: 60, hbIntervalSec: 20 }, { clock });
    await world.start();
    const ctx = await started;
    const { publish } = world.bus;
    world.bus.publish = () => Promise.reject(new LongshoreError("LONGSHORE_UNREACHABLE", "no broker"));
    await clock.advance(59_999);
    expect(ctx.signal.aborted).toBe(false);
    world.bus.publish = publish;
    const failing = world.bus.publish;
    // The last heartbeat is also refused. The sign-off succeeds.
    world.bus.publish = (records) =>
      records.some(({ value }) => String(value).includes("TASK_HEARTBEAT"))
        ? Promise.reject(new LongshoreError("LONGSHORE_UNREACHABLE", "no broker"))
        : failing.call(world.bus, records);
    await clock.advance(1);
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "lease_lost" });
    expect(ctx.signal.aborted).toBe(true);
  });

  it("[F-CANC-05] a worker that stops ends its run between two batches and gives it back", async () => {
    const world = await flowkitWorld();
    const first = deferred<void>();
    const gate = deferred<void>();
    const slow = counting(3, async () => {
      first.resolve();
      await gate.promise;
      return {};
    });
    const worker = await world.worker([slow], { workerId: "w-1" });
    await world.start();
    await first.promise;
    const stopped = worker.stop();
    gate.resolve();
    await stopped;
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "CANCELLED"]);
    expect((await world.end()).payload.reason).toBe("shutdown");
    expect(world.artifacts.states.size).toBe(0);
  });

  it.each([
    ["handler", counting(0)],
    [
      "generator",
      streamTask("probe", async function* (batches) {
        for await (const batch of batches) yield batch.result({ of: batch.batch_uid });
      }),
    ],
  ])("[F-CANC-05] a worker that stops does not wait for the upstream of a run that has nothing to process (%s)", async (_kind, task) => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }], false);
    const worker = await world.worker([task], { workerId: "w-1" });
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    await world.event("BATCH_OK");
    await worker.stop();
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "shutdown" });
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "CANCELLED"]);
    expect(world.artifacts.finishedBy(world.taskId, "n")).toEqual(["u u0"]);
    expect(world.artifacts.calls).not.toContain("complete");
  });

  it("[A04] a cancel while an adapter waits for its upstream gives CANCELLED and no complete artifact", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }], false);
    await world.worker([counting(0)], { workerId: "w-1" });
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    await world.event("BATCH_OK");
    await world.cancel("user_request", "w-1");
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "user_request" });
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "CANCELLED"]);
    expect(await world.artifacts.isComplete(world.taskId, "n")).toBe(false);
    expect(world.artifacts.calls).not.toContain("complete");
  });

  it("[A24] a handler that exceeds the deadline of a cancel is abandoned and reported", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    const started = deferred<void>();
    const deaf = counting(2, () => {
      started.resolve();
      return new Promise(() => {});
    });
    const worker = await world.worker([deaf], { workerId: "w-1" }, { clock, slots: 1 });
    await world.start();
    await started.promise;
    await world.cancel("user_request", "w-1", { deadlineMs: clock.now() + 30_000 });
    await until(() => world.logged("worker.run.cancelling").length === 1);
    await clock.advance(29_999);
    expect(world.kinds()).toEqual(["TASK_ACCEPTED"]);
    await clock.advance(1);
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "user_request" });
    await until(() => worker.status().running.length === 0);
    expect(worker.status().counts.abandoned).toBe(1);
  });

  it("a command to cancel ends the run that it names", async () => {
    const world = await flowkitWorld();
    const { started, handler } = waiting();
    await world.worker([handler], {}, { slots: 2 });
    await world.start();
    await started;
    await world.start(null, { payload: { cmd: "TASK_CANCEL", reason: "changed my mind" }, change: { dedup_id: "c" } });
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "changed my mind" });
  });

  it("an attempt that was replaced by a later one stops and stores nothing", async () => {
    const world = await flowkitWorld();
    const gate = deferred<void>();
    const first = deferred<void>();
    const slow = counting(2, async () => {
      first.resolve();
      await gate.promise;
      return {};
    });
    const worker = await world.worker([slow]);
    await world.start();
    await first.promise;
    world.artifacts.node(world.taskId, "n").epoch = 2;
    gate.resolve();
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "lease_lost" });
    expect(world.artifacts.node(world.taskId, "n").parts.size).toBe(0);
    expect(worker.status().counts.lost).toBe(1);
  });
});
