// Stopping: the worker takes no new task, running tasks end and are reported, and no task is lost.

import { readdir } from "node:fs/promises";
import { describe, expect, it } from "vitest";
import { anyPoll, anyUpdate, json, updateV1, updateV2 } from "../../../../test/support/conductor-stub.ts";
import { setup } from "../../../../test/support/conductor-worker.ts";
import { heldTask, obedientTask } from "../../../../test/support/reference-worker.ts";
import { until } from "../../../../test/support/until.ts";
import { task } from "../../../core/task.ts";

describe("stopping", () => {
  it("[C-ARCH-10, C-V2-09] waits for running tasks, reports them by v1 so that no further task arrives, and polls no more", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], before: (stub) => void stub.enqueue("held") });
    await held.started;
    s.stub.enqueue("held", { taskId: "left" });
    const stopping = s.worker.stop();
    const polls = s.stub.seen(anyPoll).length;
    held.resolve({ fine: true });
    await stopping;
    expect(s.stub.results).toMatchObject([{ taskId: "task-1", status: "COMPLETED" }]);
    expect(s.stub.seen(updateV1)).toHaveLength(1);
    expect(s.stub.seen(updateV2)).toEqual([]);
    expect(s.stub.seen(anyPoll)).toHaveLength(polls);
    expect(s.stub.tasks.get("left")?.status).toBe("SCHEDULED");
  });

  it("continues the heartbeats of running tasks", async () => {
    const held = heldTask();
    await using s = await setup({
      tasks: [held.task],
      work: { drain: "60s" },
      before: (stub) => void stub.enqueue("held", { responseTimeoutSeconds: 10 }),
    });
    await held.started;
    const stopping = s.worker.stop();
    await s.clock.armed(8_000, 2);
    await s.clock.advance(8_000);
    await until(() => s.stub.heartbeats.length === 1);
    held.resolve({});
    await stopping;
    expect(s.stub.results).toHaveLength(1);
  });

  it("gives back tasks that do not end in time, without using an attempt", async () => {
    const obedient = obedientTask();
    await using s = await setup({
      tasks: [obedient.task],
      work: { drain: "5s" },
      before: (stub) => void stub.enqueue("held", { outputData: { page: 3 }, pollCount: 1 }),
    });
    await obedient.started;
    const stopping = s.worker.stop();
    await s.clock.armed(5_000, 2);
    await s.clock.advance(5_000);
    await stopping;
    expect(s.stub.results).toMatchObject([{ status: "IN_PROGRESS", callbackAfterSeconds: 0, outputData: { page: 3 } }]);
    expect(s.stub.results[0]).not.toHaveProperty("reasonForIncompletion");
  });

  it("waits for the response of an open poll, and gives back its tasks", async () => {
    let called = 0;
    await using s = await setup({ tasks: [task("greet", () => void called++)], stub: { longPolls: true } });
    await until(() => s.stub.heldPolls === 1);
    const stopping = s.worker.stop();
    s.stub.enqueue("greet");
    await stopping;
    expect(called).toBe(0);
    expect(s.stub.results).toMatchObject([{ taskId: "task-1", status: "IN_PROGRESS", callbackAfterSeconds: 0 }]);
  });

  it("ends an open poll at once when the server takes back its tasks", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], stub: { longPolls: true, returns: true } });
    await until(() => s.stub.heldPolls === 1);
    s.stub.releasePolls();
    await s.clock.armed(1);
    await s.clock.advance(1);
    await until(() => s.stub.heldPolls === 1);
    await s.worker.stop();
    expect(s.worker.status().state).toBe("stopped");
  });

  it("by force does not wait for an open poll", async () => {
    await using s = await setup({ tasks: [task("greet", () => null)], stub: { longPolls: true } });
    await until(() => s.stub.heldPolls === 1);
    await s.worker.stop({ force: true });
    expect(s.worker.status().state).toBe("stopped");
  });

  it("gives back tasks that arrived in addition to the requested number and were not begun", async () => {
    const held = heldTask();
    const tasks = ["t1", "t2", "t3"].map((taskId) => ({ taskId, workflowInstanceId: "w", pollCount: 1 }));
    await using s = await setup({
      tasks: [held.task],
      before: (stub) => {
        for (const each of tasks) stub.tasks.set(each.taskId, { ...each, status: "IN_PROGRESS" });
        stub.misbehave(anyPoll, json(200, tasks), 1);
      },
    });
    await held.started;
    const stopping = s.worker.stop();
    held.resolve({});
    await stopping;
    const told = s.stub.results.map(({ taskId, status }) => `${taskId} ${status}`).sort();
    expect(told).toEqual(["t1 COMPLETED", "t2 IN_PROGRESS", "t3 IN_PROGRESS"]);
  });

  it("runs a task that update-v2 had already brought", async () => {
    const order: string[] = [];
    const greet = task("greet", (input: { n: number }) => void order.push(`ran ${input.n}`));
    await using s = await setup({
      tasks: [greet],
      before: (stub) => {
        stub.enqueue("greet", { inputData: { n: 1 } });
        stub.enqueue("greet", { inputData: { n: 2 } });
      },
    });
    // The stop begins while the response with the second task is being sent.
    await s.stub.next(updateV2);
    await s.worker.stop();
    expect(order).toEqual(["ran 1", "ran 2"]);
    expect(s.stub.results.map(({ status }) => status)).toEqual(["COMPLETED", "COMPLETED"]);
  });

  it("does not wait for the pauses between the attempts of an update", async () => {
    const held = heldTask();
    await using s = await setup({ tasks: [held.task], outbox: true, before: (stub) => void stub.enqueue("held") });
    await held.started;
    s.stub.misbehave(anyUpdate, { status: 503 });
    held.resolve({ fine: true });
    await until(() => s.stub.seen(anyUpdate).length >= 1);
    await s.clock.armed(10_000, 2);
    const stopping = s.worker.stop({ force: true });
    await s.clock.advance(8_000);
    await stopping;
    expect(await readdir(s.outbox)).toHaveLength(1);
    expect(s.worker.status().counts.lost).toBe(1);
  });
});
