// Long tasks: how heartbeats prevent the response timeout, and how a worker notices a cancel.

import { describe, expect, it } from "vitest";
import { anyPoll, anyUpdate, refusal, updateV1, updateV2 } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { aborted, heldTask, obedientTask } from "../../../../test/support/reference-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { leaseEveryMs } from "./lease.ts";

const lookUp = /^GET \/api\/tasks\/task-1$/;

describe("heartbeats", () => {
  it("[C-LEASE-02, C-LEASE-06] are sent after 0.8 of the response timeout, and at the latest a second before its end", () => {
    const seconds = [0, 1, 1.9, 2, 3, 5, 10, 60, 3_600].map((timeout) => [timeout, leaseEveryMs(timeout)]);
    expect(seconds).toEqual([
      [0, undefined],
      [1, undefined],
      [1.9, undefined],
      [2, 1_000],
      [3, 2_000],
      [5, 4_000],
      [10, 8_000],
      [60, 48_000],
      [3_600, 2_880_000],
    ]);
  });

  it("[C-LEASE-01, C-LEASE-03] are v1 updates that extend the lease while the handler runs; they are on by default", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 10 }) });
    await held.started;
    for (let beats = 1; beats <= 3; beats++) {
      await s.clock.armed(8_000, 2);
      await s.clock.advance(7_999);
      expect(s.stub.heartbeats).toHaveLength(beats - 1);
      await s.clock.advance(1);
      await until(() => s.stub.heartbeats.length === beats);
    }
    const beat = s.stub.heartbeats[0];
    expect(`${beat?.method} ${beat?.path}`).toBe("POST /api/tasks");
    expect(beat?.body).toEqual({
      taskId: "task-1",
      workflowInstanceId: "wf-1",
      workerId: "w1",
      status: "IN_PROGRESS",
      extendLease: true,
    });
    held.resolve({ done: true });
    await until(() => s.stub.results.length === 1);
    await s.clock.advance(60_000);
    expect(s.stub.heartbeats).toHaveLength(3);
  });

  it.each([
    ["the code", { leaseExtend: false }],
    ["the environment", { env: { CONDUCTOR_WORKER_ALL_LEASE_EXTEND_ENABLED: "false" } }],
  ])("are off by %s", async (_name, wire) => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], wire, before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 10 }) });
    await held.started;
    await s.clock.advance(60_000);
    expect(s.stub.heartbeats).toEqual([]);
    held.resolve(1);
  });

  it("[C-LEASE-04] that fail are repeated each second and reported once, and the worker keeps the task", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 5 }) });
    const ctx = await held.started;
    s.stub.misbehave(updateV1, { status: 503 }, 7);
    await s.clock.armed(4_000, 2);
    await s.clock.advance(4_000);
    for (let beats = 1; beats <= 7; beats++) {
      await until(() => s.stub.seen(updateV1).length === beats);
      await s.clock.armed(1_000, 2);
      await s.clock.advance(1_000);
    }
    // The response timeout has passed by our clock, but only the server can decide that.
    await until(() => s.stub.heartbeats.length === 1);
    expect(ctx.signal.aborted).toBe(false);
    expect(s.notices.filter(({ message }) => message.includes("heartbeat fails"))).toHaveLength(1);
    held.resolve({ fine: true });
    await until(() => s.stub.results.length === 1);
  });

  it("[C-LEASE-05, C-UPD-07] continue while the poll loop waits after failures and while the result is being reported", async () => {
    const held = heldTask();
    await using s = await setup({
      tasks: [held.task],
      wire: { concurrency: 2 },
      before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 10 }),
    });
    await held.started;
    s.stub.misbehave(anyPoll, { status: 503 });
    s.stub.misbehave(updateV2, { status: 503 });
    // Polls for the other slot fail, and the pauses between them are 2, 4 and more seconds.
    for (let beats = 1; beats <= 2; beats++) while (s.stub.heartbeats.length < beats) await s.clock.advance(500);
    expect(s.notices.some(({ message }) => message.includes("poll of held fails"))).toBe(true);
    held.resolve({ fine: true });
    await until(() => s.stub.seen(updateV2).length === 1);
    while (s.stub.heartbeats.length < 3) await s.clock.advance(500);
    expect(s.stub.seen(updateV2)).toHaveLength(1);
  });

  it("[C-LEASE-07] end a task that the server no longer knows", async () => {
    const obedient = obedientTask();
    await using s = await setup({ tasks: [obedient.task], before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 10 }) });
    const ctx = await obedient.started;
    s.stub.misbehave(updateV1, refusal(404, "No such task found by id: task-1"), 1);
    await s.clock.armed(8_000, 2);
    await s.clock.advance(8_000);
    expect((await aborted(ctx.signal)).code).toBe("LONGSHORE_LEASE_LOST");
  });
});

describe("a task that runs", () => {
  it("is looked up every ten seconds by default, and its cancel aborts the handler's signal", async () => {
    const obedient = obedientTask();
    await using s = await setup({
      tasks: [obedient.task],
      wire: { cancelPoll: undefined as never },
      before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 3_600 }),
    });
    const ctx = await obedient.started;
    await s.clock.armed(10_000, 2);
    await s.clock.advance(10_000);
    await until(() => s.stub.seen(lookUp).length === 1);
    expect(ctx.signal.aborted).toBe(false);
    s.stub.setStatus("task-1", "CANCELED");
    await s.clock.armed(10_000, 2);
    await s.clock.advance(10_000);
    expect((await aborted(ctx.signal)).code).toBe("LONGSHORE_CANCELLED");
    await until(() => s.stub.results.length === 1);
    expect(s.stub.results[0]?.status).toBe("FAILED_WITH_TERMINAL_ERROR");
    expect(s.stub.heartbeats).toEqual([]);
    expect(s.notices.filter(({ level }) => level !== "info")).toEqual([]);
  });

  it("is looked up at heartbeat time when that is sooner", async () => {
    const obedient = obedientTask();
    await using s = await setup({
      tasks: [obedient.task],
      wire: { cancelPoll: "1h" },
      before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 10 }),
    });
    const ctx = await obedient.started;
    s.stub.setStatus("task-1", "CANCELED");
    await s.clock.armed(8_000, 2);
    await s.clock.advance(8_000);
    expect((await aborted(ctx.signal)).code).toBe("LONGSHORE_CANCELLED");
    expect(s.stub.heartbeats).toHaveLength(1);
  });

  it.each(["TIMED_OUT", "COMPLETED", "FAILED"])(
    "[C-LEASE-07] and is %s at the server is aborted although its heartbeat is accepted, and nothing is reported",
    async (status) => {
      const obedient = obedientTask();
      await using s = await setup({
        tasks: [obedient.task],
        wire: { cancelPoll: "2s" },
        before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 3 }),
      });
      const ctx = await obedient.started;
      s.stub.setStatus("task-1", status);
      await s.clock.armed(2_000, 2);
      await s.clock.advance(2_000);
      expect((await aborted(ctx.signal)).code).toBe("LONGSHORE_LEASE_LOST");
      expect(s.stub.heartbeats.map(({ status: answered }) => answered)).toEqual([200]);
      await s.worker.stop();
      expect(s.stub.results).toEqual([]);
      expect(s.worker.status().counts.lost).toBe(1);
    },
  );

  it("is not looked up again on a server that does not serve that path", async () => {
    const held = heldTask();
    await using s = await setup({
      tasks: [held.task],
      wire: { cancelPoll: "2s", leaseExtend: false },
      before: (stub) => {
        stub.misbehave(lookUp, { status: 405 });
        stub.enqueue("held");
      },
    });
    await held.started;
    for (let looks = 0; looks < 3; looks++) {
      await s.clock.armed(2_000, 2);
      await s.clock.advance(2_000);
    }
    await until(() => s.stub.seen(lookUp).length === 1);
    held.resolve({ fine: true });
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(lookUp)).toHaveLength(1);
  });

  it("is not looked up while its result is being reported", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], wire: { cancelPoll: "2s" }, before: (stub) => void stub.enqueue("held") });
    await held.started;
    s.stub.misbehave(anyUpdate, { status: 500 }, 1);
    held.resolve({});
    await until(() => s.stub.seen(anyUpdate).length === 1);
    s.stub.setStatus("task-1", "COMPLETED");
    await s.clock.armed(10_000, 3);
    await s.clock.advance(10_000);
    await until(() => s.stub.results.length === 1);
    expect(s.stub.seen(lookUp)).toEqual([]);
  });
});
