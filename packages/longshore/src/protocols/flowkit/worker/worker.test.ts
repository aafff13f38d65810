// The records of a run: a worker on the embedded bus, with the test as its coordinator.

import { runInNewContext } from "node:vm";
import { describe, expect, it } from "vitest";
import { counting } from "../../../../test/support/flowkit-counting.ts";
import { flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import { until } from "../../../../test/support/until.ts";
import { LongshoreError, TerminalError } from "../../../core/errors.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { TestClock } from "../../../testing/clock.ts";
import { BatchResult } from "../wire/batch.ts";
import { streamTask } from "./stream-task.ts";

describe("a run", () => {
  it("reports its batches by storing them when the store belongs to the coordinator", async () => {
    const world = await flowkitWorld();
    world.artifacts.tells = true;
    await world.worker([counting(3)]);
    await world.start();
    await world.end();
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "TASK_DONE"]);
    expect([...world.artifacts.node(world.taskId, "n").parts.keys()]).toEqual(["b0", "b1", "b2"]);
  });

  it("[F-OVR-01, F-OVR-03] is accepted, gets heartbeats, is reported batch by batch, and ends", async () => {
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

  it("[F-OVR-05, F-ART-01, F-ART-02] each batch's metrics are stored as an artifact before they are reported", async () => {
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
    const batches = world.events().filter(({ payload }) => payload.kind === "BATCH_OK");
    expect(batches.map(({ payload: { batch_uid, metrics, artifacts_ref } }) => ({ batch_uid, metrics, artifacts_ref }))).toEqual(
      [0, 1, 2].map((at) => ({
        batch_uid: `b${at}`,
        metrics: { at },
        artifacts_ref: { task_id: world.taskId, node_id: "n", batch_uid: `b${at}` },
      })),
    );
  });

  it("[F-ART-03] is marked complete at its end, with its final metrics, before that is reported", async () => {
    const world = await flowkitWorld();
    const { publish } = world.bus;
    const stateWhenTold: string[] = [];
    world.bus.publish = (records) => {
      if (records.some(({ value }) => String(value).includes('"TASK_DONE"')))
        stateWhenTold.push(world.artifacts.node(world.taskId, "n").state);
      return publish.call(world.bus, records);
    };
    await world.worker([counting(1)]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: { total: 1 } });
    expect(world.artifacts.node(world.taskId, "n")).toMatchObject({ state: "complete", final: { total: 1 } });
    expect(world.artifacts.calls).toEqual(["put b0", "complete"]);
    expect(stateWhenTold).toEqual(["complete"]);
  });

  it("results are stored and sent in groups, and the handler does not wait for each", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(5_000)]);
    await world.start();
    await world.end();
    const puts = world.artifacts.calls.filter((call) => call.startsWith("put"));
    expect(puts.length).toBeLessThanOrEqual(50);
    expect(world.events().filter(({ payload }) => payload.kind === "BATCH_OK")).toHaveLength(5_000);
  });

  it("a store that is down for a while delays results but loses none", async () => {
    const world = await flowkitWorld();
    world.artifacts.troubles.push(new LongshoreError("LONGSHORE_UNREACHABLE", "away"), new LongshoreError("LONGSHORE_UNREACHABLE", "away"));
    await world.worker([counting(2)]);
    await world.start();
    expect((await world.end()).payload.kind).toBe("TASK_DONE");
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_OK", "BATCH_OK", "TASK_DONE"]);
  });

  it("a store that stays down fails the run, which another worker may retry", async () => {
    const world = await flowkitWorld();
    const clock = new TestClock();
    world.artifacts.putPartials = () => Promise.reject(new LongshoreError("LONGSHORE_STORE_UNAVAILABLE", "no space left"));
    await world.worker([counting(2)], {}, { clock });
    await world.start();
    await world.event("TASK_ACCEPTED");
    await until(() => clock.pending > 2);
    // Heartbeats continue meanwhile. The test waits for each, because the bus is real.
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

  it("[F-HAND-02] a handler without loadInput gets both inputs under their own names, empty when absent", async () => {
    const world = await flowkitWorld();
    const loads: unknown[] = [];
    const iterBatches = (loaded: unknown) => {
      loads.push(loaded);
      return [];
    };
    await world.worker([streamTask("probe", { iterBatches, processBatch: () => ({}) })]);
    await world.start(null, { nodeId: "a" });
    await world.end("a");
    await world.start({ b: 1 }, { nodeId: "b", payload: { input_ref: { key: "k" } } });
    await world.end("b");
    expect(loads).toEqual([
      { input_ref: {}, input_inline: {} },
      { input_ref: { key: "k" }, input_inline: { b: 1 } },
    ]);
  });

  it("a batch without a name gets a name from its payload, the same in every attempt", async () => {
    const world = await flowkitWorld();
    await world.worker([streamTask("probe", { iterBatches: () => [{ payload: { i: 0 } }], processBatch: () => ({}) })]);
    await world.start();
    await world.end();
    expect((await world.event("BATCH_OK")).payload.batch_uid).toBe("44f0f2ddf3bab8c8d176e15c7a221da2a2a43097");
  });

  it("a failing batch is reported after the earlier batches, then the failure of its node, and then nothing more", async () => {
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

  it("the result of a batch may be a failure with a reason", async () => {
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

  it("[A23] a result that is too large for the wire fails its batch with its size", async () => {
    const world = await flowkitWorld();
    await world.worker([counting(1, () => ({ text: "x".repeat(1_100_000) }))]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_FAILED", reason_code: "batch_too_large", permanent: true });
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", "BATCH_FAILED", "TASK_FAILED"]);
    expect((await world.event("BATCH_FAILED")).payload.error).toMatch(/has 110\d{4} bytes, expected at most/);
  });

  it("batches that the coordinator has abandoned are skipped", async () => {
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
    const { payload } = await world.end();
    expect(payload).toMatchObject({ kind: "TASK_FAILED", reason_code, permanent });
    return payload;
  }

  // These correspond to Python's TypeError, ValueError and KeyError. The reference calls them unexpected_error, although its guide says
  // otherwise.
  it("[F-HAND-07, T81] errors that JavaScript and schemas throw for wrong values are permanent and recognised by name", async () => {
    for (const error of [new TypeError("x"), new RangeError("x"), new SyntaxError("x")]) await failsWith(error, "bad_input", true);
    for (const name of ["ZodError", "$ZodError", "ValiError", "ValidationError", "SchemaError"])
      await failsWith(Object.assign(new Error("x"), { name }), "bad_input", true);
  });

  it("[F-HAND-07] an error of another realm, or an object that looks like an error, is also recognised by its name", async () => {
    const foreign = runInNewContext("new TypeError('no sku')") as Error;
    expect(foreign).not.toBeInstanceOf(Error);
    expect((await failsWith(foreign, "bad_input", true)).error).toBe("no sku");
    await failsWith({ name: "$ZodError", issues: [] }, "bad_input", true);
    await failsWith(runInNewContext("new Error('away')"), "unexpected_error", false);
  });

  it("[F-HAND-06, T83] any other error is transient, also a thrown value that is not an error", async () => {
    await failsWith(new Error("x"), "unexpected_error", false);
    await failsWith("x", "unexpected_error", false);
  });

  it("a TerminalError is permanent and has its own name", async () => {
    await failsWith(new TerminalError("x"), "terminal_error", true);
  });

  it("[F-HAND-06, T82] bad input is called bad_input, as in the guide", async () => {
    // The reference calls it unexpected_error, although its guide says otherwise.
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

  it.each(["init", "loadInput", "iterBatches", "finalize"])("[F-HAND-06] an error in %s fails the node and no batch", async (step) => {
    const world = await flowkitWorld();
    const fails = () => {
      throw new RangeError("out of reach");
    };
    await world.worker([streamTask("probe", { processBatch: () => ({}), [step]: fails })]);
    await world.start();
    expect((await world.end()).payload).toMatchObject({
      kind: "TASK_FAILED",
      reason_code: "bad_input",
      permanent: true,
      error: "out of reach",
    });
    expect(world.kinds()).toEqual(["TASK_ACCEPTED", ...(step === "finalize" ? ["BATCH_OK"] : []), "TASK_FAILED"]);
    expect(world.artifacts.calls).not.toContain("complete");
  });

  it("[F-BP-02] a handler may name its errors, and mark that a mistake in the configuration is permanent", async () => {
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

  it("a worker does not start with a role for which it has no handler", async () => {
    const world = await flowkitWorld({ roles: ["probe", "ghost"] });
    await expect(world.worker([counting(1)], { roles: ["probe", "ghost"] })).rejects.toMatchObject({
      code: "LONGSHORE_BAD_CONFIG",
      message: 'roles has "ghost" without a handler, expected roles among those that have one: "probe".',
      detail: { field: "roles" },
    });
    expect(world.told).toEqual([]);
  });
});
