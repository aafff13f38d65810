// The life of a run on the wire: a worker on the embedded bus, and a coordinator whose part the test plays.

import { describe, expect, it } from "vitest";
import { flowkitWorld } from "../../../test/support/flowkit-played.ts";
import { deferred, until } from "../../../test/support/until.ts";
import { LongshoreError, TerminalError } from "../../errors.ts";
import type { JsonObject } from "../../json.ts";
import { task } from "../../task.ts";
import { TestClock } from "../../testing/clock.ts";
import { Batch, BatchResult, FinalizeResult } from "./batch.ts";
import type { RunContext } from "./run-context.ts";
import { streamTask } from "./stream-task.ts";

/** A handler of `count` batches. */
function counting(count: number, process: (batch: Batch, ctx: RunContext) => unknown = () => ({ done: 1 })) {
  return streamTask("probe", {
    *iterBatches() {
      for (let at = 0; at < count; at++) yield new Batch({ batch_uid: `b${at}`, payload: { at } });
    },
    processBatch: process,
    finalize: () => new FinalizeResult({ metrics: { total: count } }),
  });
}

describe("a run", () => {
  it("tells its batches by keeping them where the store is the coordinator's own", async () => {
    const world = await flowkitWorld();
    world.artifacts.tells = true;
    await world.worker([counting(3)]);
    await world.start();
    await world.end();
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "TASK_DONE"]);
    expect([...world.artifacts.node(world.taskId, "n").parts.keys()]).toEqual(["b0", "b1", "b2"]);
  });

  it("[F-OVR-01, F-OVR-03] is accepted, beaten for, told batch by batch, and ended", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(3)], { workerId: "w-1" });
    await world.start();
    const { envelope, key, topic } = await world.end();
    expect(world.told.filter(({ topic }) => topic === "status.probe.v1").map(({ payload }) => payload.kind)).toEqual([
      "TASK_ACCEPTED",
      "TASK_HEARTBEAT",
      "BATCH_OK",
      "BATCH_OK",
      "BATCH_OK",
      "TASK_DONE",
    ]);
    expect([topic, key]).toEqual(["status.probe.v1", `${world.taskId}:n`]);
    expect(envelope).toMatchObject({
      v: 1,
      msg_type: "event",
      role: "worker",
      step_type: "probe",
      attempt_epoch: 1,
      target_worker_id: null,
    });
    expect(envelope.payload).toEqual({
      kind: "TASK_DONE",
      worker_id: "w-1",
      metrics: { total: 3 },
      artifacts_ref: { task_id: world.taskId, node_id: "n" },
      final_uid: "__final__",
    });
  });

  it("[F-OVR-05, F-ART-01, F-ART-02] each batch's metrics are kept as an artifact before they are told", async () => {
    const world = await flowkitWorld();
    const order: string[] = [];
    const { publish } = world.bus;
    world.bus.publish = (records) => {
      for (const { value } of records) {
        const { payload } = JSON.parse(String(value)) as { payload: JsonObject };
        if (payload.kind === "BATCH_OK")
          order.push(`${payload.batch_uid} ${world.artifacts.node(world.taskId, "n").parts.has(String(payload.batch_uid))}`);
      }
      return publish.call(world.bus, records);
    };
    await world.worker([counting(3, ({ payload }) => new BatchResult({ success: true, metrics: { at: payload.at as number } }))]);
    await world.start();
    await world.end();
    expect(order).toEqual(["b0 true", "b1 true", "b2 true"]);
    expect([...world.artifacts.node(world.taskId, "n").parts]).toEqual([
      ["b0", { at: 0 }],
      ["b1", { at: 1 }],
      ["b2", { at: 2 }],
    ]);
    expect((await world.event("BATCH_OK")).payload).toMatchObject({
      batch_uid: "b0",
      metrics: { at: 0 },
      artifacts_ref: { task_id: world.taskId, node_id: "n", batch_uid: "b0" },
    });
  });

  it("[F-ART-03] is marked complete at its end, with its final metrics, before that is told", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    await world.start();
    await world.end();
    expect(world.artifacts.node(world.taskId, "n")).toMatchObject({ state: "complete", final: { total: 1 } });
    expect(world.artifacts.calls).toEqual(["put b0", "complete"]);
  });

  it("results are kept and told in groups, and the handler does not wait for each", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(5_000)]);
    await world.start();
    await world.end();
    const puts = world.artifacts.calls.filter((call) => call.startsWith("put"));
    expect(puts.length).toBeLessThanOrEqual(50);
    expect(world.events().filter(({ payload }) => payload.kind === "BATCH_OK")).toHaveLength(5_000);
  });

  it("a store that is away for a while holds the results up and loses none", async () => {
    const world = await flowkitWorld();
    world.artifacts.troubles.push(new LongshoreError("LONGSHORE_UNREACHABLE", "away"), new LongshoreError("LONGSHORE_UNREACHABLE", "away"));
    await world.worker([counting(2)]);
    await world.start();
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "BATCH_OK", "TASK_DONE"]);
  });

  it("a store that stays away fails the run, which may be tried again elsewhere", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    world.artifacts.putPartials = () => Promise.reject(new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "no space left"));
    await world.worker([counting(2)], {}, { clock });
    await world.start();
    await world.event("TASK_ACCEPTED");
    await until(() => clock.pending > 2);
    // Heartbeats go on meanwhile: each is waited for, because the bus is real.
    const beats = () => world.told.filter(({ payload }) => payload.kind === "TASK_HEARTBEAT").length;
    for (let passed = 0; passed < 320_000; passed += 20_000) {
      const before = beats();
      await clock.advance(20_000);
      await until(() => beats() > before || world.kinds().length > 1);
    }
    expect((await world.end()).payload).toMatchObject({
      kind: "TASK_FAILED",
      reason_code: "artifacts_unavailable",
      permanent: false,
      error: "no space left",
    });
  });

  it("a batch without a name is named by its payload, the same in every attempt", async () => {
    const world = await flowkitWorld();
    await world.worker([streamTask("probe", { iterBatches: () => [{ payload: { i: 0 } }], processBatch: () => ({}) })]);
    await world.start();
    await world.end();
    expect((await world.event("BATCH_OK")).payload.batch_uid).toBe("44f0f2ddf3bab8c8d176e15c7a221da2a2a43097");
  });

  it("a failing batch is told, then the failure of its node; what came before it was told before, and nothing comes after it", async () => {
    const world = await flowkitWorld();
    const processed: number[] = [];
    const failing = counting(4, ({ payload }) => {
      processed.push(payload.at as number);
      if (payload.at === 2) throw new Error("disk full");
      return {};
    });
    await world.worker([failing]);
    await world.start();
    await world.end();
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "BATCH_OK", "BATCH_FAILED", "TASK_FAILED"]);
    expect(processed).toEqual([0, 1, 2]);
    const why = { reason_code: "unexpected_error", permanent: false, error: "disk full" };
    expect((await world.event("BATCH_FAILED")).payload).toMatchObject({ batch_uid: "b2", ...why, artifacts_ref: { batch_uid: "b2" } });
    expect((await world.event("TASK_FAILED")).payload).toMatchObject(why);
    expect(await world.artifacts.isComplete(world.taskId, "n")).toBe(false);
  });

  it("a batch may say itself that it failed, and why", async () => {
    const world = await flowkitWorld();
    const result = new BatchResult({ success: false, reason_code: "schema_mismatch", permanent: true, error: "no id" });
    await world.worker([counting(1, () => result)]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({
      kind: "TASK_FAILED",
      reason_code: "schema_mismatch",
      permanent: true,
      error: "no id",
    });
  });

  it("a result that is too large for the wire fails its batch with its size", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1, () => ({ text: "x".repeat(1_100_000) }))]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_FAILED", reason_code: "batch_too_large", permanent: true });
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_FAILED", "TASK_FAILED"]);
    expect((await world.event("BATCH_FAILED")).payload.error).toMatch(/has 110\d{4} bytes, expected at most/);
  });

  it("batches that the coordinator has given up are passed over", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(3)]);
    await world.start(null, { payload: { dead_letters: ["b1"] } });
    await world.end();
    expect(world.events().flatMap(({ payload }) => payload.batch_uid ?? [])).toEqual(["b0", "b2"]);
  });
});

describe("errors", () => {
  async function failsWith(error: unknown, reason_code: string, permanent: boolean) {
    const world = await flowkitWorld();
    const thrower = counting(1, () => {
      throw error;
    });
    await world.worker([thrower]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_FAILED", reason_code, permanent });
  }

  it("[F-HAND-07, T81] what JavaScript and schemas throw for wrong values is permanent, known by its name", async () => {
    for (const error of [new TypeError("x"), new RangeError("x"), new SyntaxError("x")]) await failsWith(error, "bad_input", true);
    await failsWith(Object.assign(new Error("x"), { name: "ZodError" }), "bad_input", true);
  });

  it("[T83] any other error may pass, and so may what is no error", async () => {
    await failsWith(new Error("x"), "unexpected_error", false);
    await failsWith("x", "unexpected_error", false);
  });

  it("a TerminalError is permanent under a name of its own", async () => {
    await failsWith(new TerminalError("x"), "terminal_error", true);
  });

  it("[F-HAND-06, T82] bad input is called bad_input, as the guide says", async () => {
    // The reference calls it unexpected_error, against its own guide.
    const world = await flowkitWorld();
    await world.worker([
      streamTask("probe", {
        loadInput: () => {
          throw new TypeError("no sku");
        },
        processBatch: () => ({}),
      }),
    ]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({ reason_code: "bad_input", permanent: true, error: "no sku" });
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "TASK_FAILED"]);
  });

  it("[F-BP-02] a handler may name its errors, and say that a mistake in the configuration is permanent", async () => {
    const world = await flowkitWorld();
    await world.worker([
      streamTask("probe", {
        processBatch: () => {
          throw new Error("no such bucket");
        },
        classifyError: (error) => [(error as Error).message.replaceAll(" ", "_"), true],
      }),
    ]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({ reason_code: "no_such_bucket", permanent: true });
  });

  it("a role without a handler fails for good", async () => {
    const world = await flowkitWorld({ roles: ["probe", "ghost"] });
    await world.worker([counting(1)], { roles: ["probe", "ghost"] });
    await world.start(null, { role: "ghost" });
    expect((await world.end()).payload).toMatchObject({ reason_code: "no_handler", permanent: true, error: "handler not registered" });
  });
});

describe("an ordinary task", () => {
  it("is a role of one batch: its output is the batch's metrics, and told as it is at the end", async () => {
    const world = await flowkitWorld();
    await world.worker([task("probe", (input: { name: string }) => ({ greeting: `Hello ${input.name}` }))]);
    await world.start({ name: "Ada" });
    const { payload } = await world.end();
    expect(payload).toMatchObject({ kind: "TASK_DONE", metrics: {}, output: { greeting: "Hello Ada" } });
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ greeting: "Hello Ada" });
  });

  it("may return anything", async () => {
    const world = await flowkitWorld();
    await world.worker([task("probe", () => [1, 2])]);
    await world.start({});
    expect((await world.end()).payload.output).toEqual([1, 2]);
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ result: [1, 2] });
  });

  it("is called once for each batch that an adapter gives it", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }]);
    await world.worker([task("probe", ({ meta }: { meta: { a: number } }) => ({ double: 2 * meta.a }))]);
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    await world.end();
    expect(world.sum("double")).toBe(6);
  });
});

describe("an ordinary task with parts", () => {
  it("gives each as a batch, and its output is what it says about all of them", async () => {
    const world = await flowkitWorld();
    const emitting = task("probe", async (_input: unknown, ctx) => {
      await ctx.emit({ rows: 1 }, { uid: "first" });
      await ctx.emit({ rows: 2 });
      return { total: 3 };
    });
    await world.worker([emitting]);
    await world.start({});
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: { total: 3 }, output: { total: 3 } });
    expect(world.sum("rows")).toBe(3);
    expect((await world.event("BATCH_OK")).payload.batch_uid).toBe("first");
  });

  it("reads those of another node while they are produced", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }]);
    const reading = task("probe", async (_input: unknown, ctx) => {
      let sum = 0;
      for await (const { value } of ctx.parts("u")) sum += (value as { a: number }).a;
      return { sum };
    });
    await world.worker([reading]);
    await world.start({});
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", output: { sum: 3 } });
  });
});

describe("a generator over batches", () => {
  it("yields metrics, and what it read before a yield is done with when that is kept", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }, { a: 2 }, { a: 3 }]);
    const pairs = streamTask("probe", async function* (batches) {
      let sum = 0;
      let read = 0;
      for await (const { payload } of batches) {
        sum += (payload.meta as { a: number }).a;
        if (++read % 2 === 0) yield { sum };
      }
      return { total: sum };
    });
    await world.worker([pairs]);
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    expect((await world.end()).payload.metrics).toEqual({ total: 6 });
    expect((await world.event("BATCH_OK")).payload).toMatchObject({ batch_uid: "u1", metrics: { sum: 3 } });
    // The third was read, but no yield has followed.
    expect(world.artifacts.finishedBy(world.taskId, "n")).toEqual(["u u0", "u u1"]);
  });

  it("several yields for one batch have names of their own, and its errors are a failure of the node", async () => {
    const world = await flowkitWorld();
    const twice = streamTask("probe", async function* (batches) {
      for await (const { payload } of batches) {
        yield { payload };
        yield { payload };
      }
      throw new RangeError("enough");
    });
    await world.worker([twice]);
    await world.start({ a: 1 });
    expect((await world.end()).payload).toMatchObject({ reason_code: "bad_input", error: "enough" });
    const uids = world.events().flatMap(({ payload }) => payload.batch_uid ?? []);
    expect(uids).toEqual([uids[0], `${uids[0]}.2`]);
  });
});

describe("commands", () => {
  it("one that comes twice is done once", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    await world.start();
    await world.start();
    await world.start(null, { nodeId: "m" });
    await world.end("m");
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "TASK_DONE"]);
  });

  it("[A14] a record that nobody can read is told of once and passed over", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    for (const value of ["{", "[]", '{"v":9}']) await world.bus.publish([{ topic: "cmd.probe.v1", key: "k", value }]);
    await world.start(null, { payload: { cmd: "TASK_DANCE" } });
    await world.start(null, { change: { step_type: "other", dedup_id: "x" } });
    await world.start();
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect(world.notices.filter(({ level }) => level === "warn").map(({ message }) => message.replace(/^.*?\): /, ""))).toEqual([
      expect.stringContaining("it is no JSON"),
      'payload.cmd is "TASK_DANCE", which is not known.',
    ]);
  });

  it("wait for a slot instead of being taken and dropped", async () => {
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

  it("of one role run no more at once than its task allows, while other roles go on", async () => {
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

  it("[F-CANC-02, F-OVR-04] a signal reaches the handler inside its batch, and the run ends as cancelled", async () => {
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

  it("[F-CANC-01] between two batches the signal is looked at for the handler", async () => {
    const world = await flowkitWorld();
    const gate = deferred<void>();
    const processed: unknown[] = [];
    const deaf = counting(3, async ({ payload }) => {
      processed.push(payload.at);
      await gate.promise;
      return {};
    });
    await world.worker([deaf], { workerId: "w-1" });
    await world.start();
    await until(() => processed.length === 1);
    await world.cancel("enough", "w-1");
    await until(() => world.logged("worker.run.cancelling").length === 1);
    gate.resolve();
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "enough" });
    expect(processed).toEqual([0]);
  });

  it("[F-CANC-03] the coordinator's flags in the database are looked at", async () => {
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

  it("[F-CANC-04] a worker whose heartbeats do not get through for a lease stops, and says so when it can", async () => {
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
    // The last beat is refused as well; the farewell gets through.
    world.bus.publish = (records) =>
      records.some(({ value }) => String(value).includes("TASK_HEARTBEAT"))
        ? Promise.reject(new LongshoreError("LONGSHORE_UNREACHABLE", "no broker"))
        : failing.call(world.bus, records);
    await clock.advance(1);
    expect((await world.end()).payload).toMatchObject({ kind: "CANCELLED", reason: "lease_lost" });
    expect(ctx.signal.aborted).toBe(true);
  });

  it("[F-CANC-05] a worker that stops ends its run between two batches and hands it back", async () => {
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

  it("[A04] a cancel while an adapter waits for its upstream gives CANCELLED and no complete artifact", async () => {
    const world = await flowkitWorld();
    world.artifacts.produce(world.taskId, "u", [{ a: 1 }], false);
    await world.worker([counting(0)], { workerId: "w-1" });
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    await world.event("BATCH_OK");
    await world.cancel("user_request", "w-1");
    expect((await world.end()).payload.kind).toBe("CANCELLED");
    expect(await world.artifacts.isComplete(world.taskId, "n")).toBe(false);
  });

  it("[A24] a handler that exceeds the deadline of a cancel is let go and reported", async () => {
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

  it("an attempt that a later one has taken over from stops and keeps nothing", async () => {
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

describe("a worker as coordinators know it", () => {
  it("announces itself when it can be reached, says how much it takes, and says goodbye", async () => {
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
    for (const { payload } of world.told) expect(payload.capabilities).toEqual({ roles: ["probe"] });
  });

  it("[A17] a question who runs a node reaches every worker, and only the one that does says so", async () => {
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

  it("a question for a node that is complete is answered so, and one for another role is not", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1)]);
    world.artifacts.produce(world.taskId, "n", []);
    await world.discover({ role: "other" });
    await world.discover();
    const { payload } = await world.find(({ topic }) => topic === "reply.tasks.v1");
    expect(payload).toMatchObject({ run_state: "idle", artifacts: { complete: true } });
  });

  it("[A21] a worker that is started again gives up the run of its former life, so that it is tried again at once", async () => {
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
  });

  it("a worker with a name of its own notes down what it runs", async () => {
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

  it("beats at its interval, with a deadline that moves", async () => {
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
