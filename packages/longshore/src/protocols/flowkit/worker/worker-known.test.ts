// Which commands a worker accepts, and what it reports to coordinators: on the embedded bus, with the test as the coordinator.

import { describe, expect, it } from "vitest";
import { counting } from "../../../../test/support/flowkit-counting.ts";
import { flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import { deferred, until } from "../../../../test/support/until.ts";
import { TestClock } from "../../../testing/clock.ts";
import type { Batch } from "../wire/batch.ts";
import type { RunContext } from "./run-context.ts";
import { streamTask } from "./stream-task.ts";

describe("commands", () => {
  // The outbox may send a command twice when it could not record the first send. This has no effect here.
  it("[T63] that arrive twice are done once", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    await world.start();
    await world.start();
    await world.start(null, { nodeId: "m" });
    await world.end("m");
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "TASK_DONE"]);
  });

  it("that are old are dropped when a later attempt exists, and begun when none exists or the check fails", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    const old = { ts_ms: Date.now() - 60_000 };
    world.artifacts.node(world.taskId, "n").epoch = 3;
    await world.start(null, { epoch: 1, change: old });
    await world.start(null, { epoch: 3, change: old });
    await world.end("n", 3);
    world.artifacts.troubles.push(new Error("away"));
    await world.start(null, { nodeId: "m", change: old });
    expect((await world.end("m")).payload.kind).toBe("TASK_DONE");
    expect(world.events().map(({ envelope }) => envelope.attempt_epoch)).toEqual([3, 3, 3]);
    expect(world.artifacts.calls.filter((call) => call === "epoch")).toHaveLength(3);
    // A command that arrives without delay is not checked.
    await world.start(null, { nodeId: "o" });
    await world.end("o");
    expect(world.artifacts.calls.filter((call) => call === "epoch")).toHaveLength(3);
  });

  it("[A14] an unreadable record is reported once and skipped", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    for (const value of ["{", "[]", '{"v":9}']) await world.bus.publish([{ topic: "cmd.probe.v1", key: "k", value }]);
    await world.start(null, { payload: { cmd: "TASK_DANCE" } });
    await world.start(null, { change: { step_type: "other", dedup_id: "x" } });
    await world.start();
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect(world.notices.filter(({ level }) => level === "warn").map(({ message }) => message.replace(/^.*?\): /, ""))).toEqual([
      expect.stringContaining("it is not JSON"),
      'payload.cmd is "TASK_DANCE", which is not known.',
      'step_type is "other" in a command on the topic of probe, expected "probe".',
    ]);
  });

  it("[A14] unreadable signals and queries stop neither", async () => {
    const world = await flowkitWorld();
    const begun = deferred<void>();
    const waiting = counting(1, (_batch, ctx) => {
      begun.resolve();
      return ctx.cancellable(new Promise(() => {}));
    });
    await world.worker([waiting], { workerId: "w-1" });
    await world.start();
    await begun.promise;
    for (const topic of ["query.tasks.v1", "signals.v1"]) {
      for (const value of ["{", "[]", '{"v":9}']) await world.bus.publish([{ topic, key: "k", value }]);
    }
    await world.send("query.tasks.v1", "query", { query: "WHO_ELSE" }, {});
    await world.discover();
    const { payload } = await world.find(({ topic }) => topic === "reply.tasks.v1");
    expect(payload).toMatchObject({ run_state: "running", worker_id: "w-1" });
    await world.send("signals.v1", "event", { sig: "DANCE" }, { change: { target_worker_id: "w-1" } });
    await world.cancel("enough", "w-1");
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "enough" });
    expect(world.told.filter(({ topic }) => topic === "reply.tasks.v1")).toHaveLength(1);
  });

  it("wait for a slot instead of being dropped", async () => {
    const world = await flowkitWorld();
    const gates = [deferred<void>(), deferred<void>(), deferred<void>()];
    let running = 0;
    let most = 0;
    const slow = streamTask("probe", {
      processBatch: async (_batch, { nodeId }) => {
        most = Math.max(most, ++running);
        await gates[Number(nodeId)]?.promise;
        running--;
        return {};
      },
    });
    await world.worker([slow], {}, { slots: 1 });
    for (const nodeId of ["0", "1", "2"]) await world.start(null, { nodeId });
    for (const [nodeId, gate] of gates.entries()) {
      await world.event("TASK_ACCEPTED", String(nodeId));
      gate.resolve();
      expect((await world.end(String(nodeId))).payload.kind).toBe("TASK_DONE");
    }
    expect(most).toBe(1);
  });

  it("of one role run only as many at the same time as the task allows, while other roles continue", async () => {
    const world = await flowkitWorld({ roles: ["probe", "other"] });
    const gates = new Map(["a", "b"].map((nodeId) => [nodeId, deferred<void>()]));
    const handler = { processBatch: (_batch: Batch, ctx: RunContext) => gates.get(ctx.nodeId)?.promise };
    await world.worker([streamTask("probe", handler, { concurrency: 1 }), streamTask("other", handler)], {}, { slots: 3 });
    await world.start(null, { nodeId: "a" });
    await world.event("TASK_ACCEPTED", "a");
    await world.start(null, { nodeId: "b" });
    await world.start(null, { nodeId: "c", role: "other" });
    await world.end("c");
    expect(world.kinds("b")).toEqual([]);
    gates.get("a")?.resolve();
    await world.event("TASK_ACCEPTED", "b");
    expect(world.kinds("a")).toContain("TASK_DONE");
    gates.get("b")?.resolve();
    await world.end("b");
  });

  it("that a stopping worker has not accepted go to another one", async () => {
    const world = await flowkitWorld();
    const gate = deferred<void>();
    const blocked = await world.worker([counting(1, () => gate.promise)], { workerId: "w-1" }, { slots: 1 });
    await world.start(null, { nodeId: "a" });
    await world.event("TASK_ACCEPTED", "a");
    await world.start(null, { nodeId: "b" });
    const stopped = blocked.stop();
    await world.worker([counting(1)], { workerId: "w-2" });
    expect((await world.end("b")).payload.worker_id).toBe("w-2");
    gate.resolve();
    await stopped;
    expect((await world.end("a")).payload).toMatchObject({ kind: "TASK_DONE", worker_id: "w-1" });
  });
});

describe("a worker as coordinators know it", () => {
  it("announces itself with its capacity when it is ready, and signs off", async () => {
    const world = await flowkitWorld();
    const worker = await world.worker([counting(1)], { workerId: "w-1" }, { slots: 4 });
    const online = await world.event("WORKER_ONLINE");
    expect([online.key, online.topic]).toEqual([null, "workers.announce.v1"]);
    expect(online.envelope).toMatchObject({ task_id: "*", node_id: "*", step_type: "*", attempt_epoch: 0 });
    expect(online.payload).toEqual({
      kind: "WORKER_ONLINE",
      worker_id: "w-1",
      type: "probe",
      capabilities: { roles: ["probe"] },
      version: "2.0.0",
      capacity: { tasks: 4 },
      resume: null,
    });
    await worker.stop();
    expect(await world.event("WORKER_OFFLINE")).toMatchObject({ payload: { worker_id: "w-1" } });
  });

  it("[A18] the announcements that follow keep its capabilities", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    await world.worker([counting(1)], { workerId: "w-1", announceIntervalSec: 60 }, { clock });
    await clock.advance(60_000);
    await until(() => world.told.filter(({ payload }) => payload.kind === "WORKER_ONLINE").length === 2);
    await clock.advance(60_000);
    await until(() => world.told.filter(({ payload }) => payload.kind === "WORKER_ONLINE").length === 3);
    expect(world.told.map(({ payload: { kind, capabilities } }) => ({ kind, capabilities }))).toEqual(
      Array.from({ length: 3 }, () => ({ kind: "WORKER_ONLINE", capabilities: { roles: ["probe"] } })),
    );
  });

  it("[A17] a query for a node reaches every worker, and only the one that runs it answers", async () => {
    const world = await flowkitWorld();
    const gate = deferred<void>();
    await world.worker([counting(1, () => gate.promise)], { workerId: "w-1" });
    await world.start(null, { epoch: 3 });
    await world.event("TASK_ACCEPTED");
    await world.worker([counting(1)], { workerId: "w-2" });
    await world.discover({ epoch: 4 });
    const replies = () => world.told.filter(({ topic }) => topic === "reply.tasks.v1");
    await until(() => replies().length === 2);
    const running = replies().find(({ payload }) => payload.run_state === "running");
    expect(running?.payload).toMatchObject({ reply: "TASK_SNAPSHOT", worker_id: "w-1", attempt_epoch: 3, progress: {}, artifacts: null });
    expect(running?.payload.lease).toMatchObject({ worker_id: "w-1" });
    expect(running?.envelope.attempt_epoch).toBe(4);
    const idle = replies().find(({ payload }) => payload.run_state === "idle");
    expect(idle?.payload).toEqual({
      reply: "TASK_SNAPSHOT",
      worker_id: null,
      run_state: "idle",
      attempt_epoch: 0,
      lease: null,
      progress: null,
      artifacts: null,
    });
    gate.resolve();
  });

  it("a query for a complete node gets this reply, and a query for another role gets none", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    world.artifacts.produce(world.taskId, "n", []);
    await world.discover({ role: "other" });
    await world.discover();
    const { payload } = await world.find(({ topic }) => topic === "reply.tasks.v1");
    expect(payload).toMatchObject({ run_state: "idle", artifacts: { complete: true } });
  });

  it("[A21, T56] a worker that starts again gives up the run of its earlier process, so that the run is retried at once", async () => {
    const world = await flowkitWorld();
    const run = { task_id: world.taskId, node_id: "n", step_type: "probe", attempt_epoch: 3, lease_id: "L", cancel_token: "c" };
    const kept = { ...run, started_at_ms: 5, state: "running" as const, checkpoint: {} };
    await world.artifacts.saveState("w-1", kept);
    await world.artifacts.saveState("w-1#2", { ...kept, node_id: "m", state: "cancelling" });
    await world.worker([counting(1)], { workerId: "w-1" }, { slots: 2 });
    const { payload, envelope } = await world.end("n", 3);
    expect(payload).toMatchObject({ kind: "TASK_FAILED", reason_code: "worker_restarted", permanent: false });
    expect(envelope.attempt_epoch).toBe(3);
    expect((await world.end("m", 3)).payload.kind).toBe("CANCELLED");
    expect((await world.event("WORKER_ONLINE")).payload.resume).toEqual(kept);
    expect(world.artifacts.states.size).toBe(0);
    // No worker claims to continue with it.
    expect([world.kinds("n"), world.kinds("m")]).toEqual([["TASK_FAILED"], ["CANCELLED"]]);
  });

  it("a worker with a configured name stores what it runs", async () => {
    const world = await flowkitWorld();
    const gate = deferred<void>();
    await world.worker([counting(1, () => gate.promise)], { workerId: "w-1" });
    await world.start();
    await world.event("TASK_ACCEPTED");
    expect(world.artifacts.states.get("w-1")).toMatchObject({ task_id: world.taskId, node_id: "n", attempt_epoch: 1, state: "running" });
    gate.resolve();
    await world.end();
    await until(() => world.artifacts.states.size === 0);
  });

  it("sends heartbeats at its interval, each with a later deadline", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    const gate = deferred<void>();
    const started = deferred<void>();
    const slow = counting(1, () => {
      started.resolve();
      return gate.promise;
    });
    await world.worker([slow], { leaseTtlSec: 60, hbIntervalSec: 20 }, { clock });
    await world.start();
    await started.promise;
    const beats = () => world.told.filter(({ payload }) => payload.kind === "TASK_HEARTBEAT");
    for (const count of [2, 3]) {
      await clock.advance(20_000);
      await until(() => beats().length === count);
    }
    const deadlines = beats().map(({ payload }) => payload.lease_deadline_ts_ms as number);
    expect(deadlines.map((deadline) => deadline - (deadlines[0] as number))).toEqual([0, 20_000, 40_000]);
    gate.resolve();
  });
});
