// The reference's classes, used as in its guide, on the embedded bus.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { flowkitWorld } from "../../../../test/support/flowkit-played.ts";
import { until } from "../../../../test/support/until.ts";
import type { Clock } from "../../../core/clock.ts";
import type { JsonObject } from "../../../core/json/json.ts";
import { TestClock } from "../../../testing/clock.ts";
import { Batch, BatchResult, FinalizeResult, RoleHandler, type RunContext, type RunInfo, Worker, WorkerConfig } from "./index.ts";

class MyHandler extends RoleHandler {
  override readonly role = "processor";

  override async *iter_batches() {
    yield new Batch({ batch_uid: "b1", payload: { items: [1, 2, 3] } });
  }

  override async process_batch(batch: Batch, _ctx: RunContext) {
    return new BatchResult({ success: true, metrics: { count: (batch.payload.items as unknown[]).length } });
  }
}

async function setup(handlers: { [role: string]: RoleHandler }, cfg: WorkerConfig, more: { clock?: Clock } = {}) {
  const world = await flowkitWorld({ roles: cfg.roles });
  const worker = new Worker({ db: world.artifacts, cfg, handlers, bus: world.bus, logger: false, ...more });
  onTestFinished(() => worker.stop());
  await worker.start();
  return { world, worker };
}

describe("the quick start", () => {
  it("[F-QS-03, F-QS-05, F-QS-06] a handler that only makes its own batches runs", async () => {
    const { world } = await setup({ processor: new MyHandler() }, new WorkerConfig({ roles: ["processor"] }));
    await world.start(null, { role: "processor" });
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: {} });
    expect((await world.event("BATCH_OK")).payload).toMatchObject({ batch_uid: "b1", metrics: { count: 3 } });
    expect((await world.event("WORKER_ONLINE")).payload).toMatchObject({ type: "processor", capacity: { tasks: 1 } });
  });

  it("[F-QS-06] errors of a handler that does not name them have the guide's names", async () => {
    class Thrower extends MyHandler {
      override async process_batch(batch: Batch): Promise<BatchResult> {
        if (batch.batch_uid === "b1") throw new TypeError("no items");
        return new BatchResult({ success: true });
      }
    }
    const { world } = await setup({ processor: new Thrower() }, new WorkerConfig({ roles: ["processor"] }));
    await world.start(null, { role: "processor" });
    const why = { reason_code: "bad_input", permanent: true, error: "no items" };
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_FAILED", ...why });
    expect((await world.event("BATCH_FAILED")).payload).toMatchObject({ batch_uid: "b1", ...why });
  });

  it("[F-QS-05, F-OVR-01] a command is done by the handler of its role, among several", async () => {
    const handler = (count: number) =>
      new (class extends RoleHandler {
        override async process_batch(): Promise<BatchResult> {
          return new BatchResult({ success: true, metrics: { count } });
        }
      })();
    // The reference has a built-in echo handler. A user's handler for this role takes precedence.
    const { world } = await setup(
      { one: handler(1), two: handler(2), echo: handler(3) },
      new WorkerConfig({ roles: ["two", "one", "echo"] }),
    );
    for (const [role, count] of [
      ["one", 1],
      ["two", 2],
      ["echo", 3],
    ] as const) {
      await world.start(null, { role, nodeId: role });
      expect(await world.end(role)).toMatchObject({ topic: `status.${role}.v1`, payload: { kind: "TASK_DONE" } });
      expect((await world.event("BATCH_OK", role)).payload.metrics).toEqual({ count });
    }
  });

  it("[F-QS-01, F-QS-02] everything is exported by one module, and a second start changes nothing", async () => {
    const { world, worker } = await setup({ processor: new MyHandler() }, new WorkerConfig({ roles: ["processor"] }));
    await worker.start();
    await world.start(null, { role: "processor" });
    await world.end();
    await worker.stop();
    await worker.stop();
    const { payload } = await world.event("WORKER_OFFLINE");
    const told = (kind: string) => world.told.filter((each) => each.payload.kind === kind);
    expect([told("BATCH_OK").length, told("WORKER_OFFLINE").length]).toEqual([1, 1]);
    // The announcements of its start and of its end.
    const { worker_id } = payload;
    expect(told("WORKER_ONLINE").map((each) => each.payload)).toMatchObject([
      { worker_id, capacity: { tasks: 1 } },
      { worker_id, capacity: { tasks: 0 } },
    ]);
  });

  it("[F-QS-04] batches and results are created with named fields, in either spelling", () => {
    expect(new Batch({ batch_uid: "b1", payload: { a: 1 } })).toMatchObject({ batch_uid: "b1", batchUid: "b1", payload: { a: 1 } });
    expect(new Batch({ batchUid: "b1" })).toMatchObject({ batch_uid: "b1", payload: {} });
    expect(new Batch()).toMatchObject({ batch_uid: null, payload: {} });
    expect(new BatchResult({ success: true, metrics: { count: 1 } })).toMatchObject({
      success: true,
      metrics: { count: 1 },
      artifacts_ref: null,
      reason_code: null,
      permanent: false,
      error: null,
    });
    expect(new BatchResult({ success: false, reasonCode: "r" })).toMatchObject({ reason_code: "r", reasonCode: "r" });
    expect(new FinalizeResult()).toMatchObject({ metrics: {}, artifacts_ref: null });
  });

  it("a start without a database is refused, and the error names it", () => {
    expect(() => new Worker({ db: undefined as never })).toThrow("db is absent");
  });
});

describe("the handler interface", () => {
  class Probe extends RoleHandler {
    override readonly role = "probe";
    readonly calls: unknown[] = [];

    override async init(run: RunInfo) {
      this.calls.push(["init", run]);
    }

    override async load_input(input_ref: JsonObject | null, input_inline: JsonObject | null) {
      this.calls.push(["load", input_ref, input_inline]);
      return super.load_input(input_ref, input_inline);
    }

    override async process_batch(batch: Batch, ctx: RunContext) {
      this.calls.push(["process", batch.payload, ctx.kv.seen]);
      ctx.kv.seen = true;
      return new BatchResult({ success: true, metrics: { count: 1 } });
    }

    override async finalize(_ctx: RunContext): Promise<FinalizeResult | null> {
      this.calls.push(["finalize"]);
      return new FinalizeResult({ metrics: { total: 1 }, artifacts_ref: { bucket: "b" } });
    }
  }

  it("[F-HAND-01, F-HAND-02, F-HAND-04] is called in order, with the guide's arguments", async () => {
    const probe = new Probe();
    const { world } = await setup({ probe }, new WorkerConfig({ roles: ["probe"], worker_id: "w-1" }));
    await world.start({ a: 1 }, { epoch: 4 });
    await world.end("n", 4);
    expect(probe.calls).toEqual([
      ["init", { task_id: world.taskId, node_id: "n", attempt_epoch: 4, worker_id: "w-1", role: "probe" }],
      ["load", null, { a: 1 }],
      ["process", { input_ref: {}, input_inline: { a: 1 } }, undefined],
      ["finalize"],
    ]);
  });

  it("[F-HAND-02] by default both inputs are loaded under their own names, and are empty when absent", async () => {
    const probe = new Probe();
    const { world } = await setup({ probe }, new WorkerConfig({ roles: ["probe"] }));
    await world.start(null, { payload: { input_ref: { key: "k" } } });
    await world.end();
    await world.start(null, { nodeId: "m" });
    await world.end("m");
    const called = (name: string) =>
      probe.calls.filter((call) => (call as unknown[])[0] === name).map((call) => (call as unknown[]).slice(1));
    expect(called("load")).toEqual([
      [{ key: "k" }, null],
      [null, null],
    ]);
    expect(called("process").map(([payload]) => payload)).toEqual([
      { input_ref: { key: "k" }, input_inline: {} },
      { input_ref: {}, input_inline: {} },
    ]);
  });

  it("[F-HAND-05] finalize returns the node's metrics and reference, or null", async () => {
    const { world } = await setup({ probe: new Probe() }, new WorkerConfig({ roles: ["probe"] }));
    await world.start();
    expect((await world.end()).payload).toMatchObject({ metrics: { total: 1 }, artifacts_ref: { bucket: "b" } });
    class Silent extends Probe {
      override async finalize() {
        return null;
      }
    }
    const silent = await setup({ probe: new Silent() }, new WorkerConfig({ roles: ["probe"] }));
    await silent.world.start();
    const { taskId: task_id } = silent.world;
    expect((await silent.world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: {}, artifacts_ref: { task_id, node_id: "n" } });
  });

  it("[F-BP-01] each run has its own scratch data, and the next run does not see it", async () => {
    const probe = new Probe();
    const { world } = await setup({ probe }, new WorkerConfig({ roles: ["probe"] }));
    for (const nodeId of ["a", "b"]) {
      await world.start(null, { nodeId });
      await world.end(nodeId);
    }
    expect(probe.calls.filter((call) => (call as unknown[])[0] === "process").map((call) => (call as unknown[])[2])).toEqual([
      undefined,
      undefined,
    ]);
  });

  it("by default there is one batch with what was loaded, counted as processed", async () => {
    class Bare extends RoleHandler {
      override readonly role = "probe";
    }
    const { world } = await setup({ probe: new Bare() }, new WorkerConfig({ roles: ["probe"] }));
    await world.start({ a: 1 });
    await world.end();
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ processed: 1 });
  });

  it("the role echo has a built-in handler", async () => {
    const { world } = await setup({}, new WorkerConfig());
    await world.start(null, { role: "echo" });
    await world.end();
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ echoed: 5 });
  });
});

describe("roles without a handler", () => {
  async function refused(roles: string[], handlers: { [role: string]: RoleHandler }): Promise<unknown> {
    const world = await flowkitWorld({ roles });
    const worker = new Worker({ db: world.artifacts, cfg: new WorkerConfig({ roles }), handlers, bus: world.bus, logger: false });
    onTestFinished(() => worker.stop());
    return worker.start().then(
      () => "started",
      (error: Error) => error.message,
    );
  }

  it("are refused at the start; the error names the role and the existing handlers", async () => {
    const message = 'roles has "procesor", "ghost" without a handler, expected roles among those that have one: "echo", "processor".';
    expect(await refused(["echo", "procesor", "ghost"], { processor: new MyHandler() })).toBe(message);
    expect(await refused(["toString"], {})).toMatch(/^roles has "toString" without a handler/);
  });

  it("are also refused when the handler is only a name", async () => {
    expect(await refused(["probe"], { probe: undefined as never })).toMatch(/^roles has "probe" without a handler/);
  });
});

describe("the configuration", () => {
  it("[F-CFG-01] has the guide's fields with the guide's defaults, in either spelling", () => {
    const cfg = new WorkerConfig({ kafka_bootstrap: "kafka:9092", roles: ["indexer", "probe"] });
    expect(cfg).toMatchObject({
      kafka_bootstrap: "kafka:9092",
      roles: ["indexer", "probe"],
      lease_ttl_sec: 60,
      hb_interval_sec: 20,
      pull_poll_ms_default: 300,
      pull_empty_backoff_ms_max: 4_000,
    });
    expect([cfg.leaseTtlSec, cfg.hbIntervalSec, cfg.lease_ttl_ms, cfg.announce_interval_ms]).toEqual([60, 20, 60_000, 60_000]);
    expect(new WorkerConfig({ leaseTtlSec: 0.05 }).lease_ttl_ms).toBe(50);
    expect(new WorkerConfig()).toMatchObject({
      ...{ kafka_bootstrap: "kafka:9092", roles: ["echo"], worker_id: null, worker_version: "2.0.0", strict_input_adapters: false },
      ...{ announce_interval_sec: 60, dedup_cache_size: 10_000, dedup_ttl_ms: 3_600_000, db_cancel_poll_ms: 500 },
    });
  });

  it("[F-CFG-01] is what the worker uses", async () => {
    class Pulling extends RoleHandler {
      override readonly role = "probe";
    }
    const clock = new TestClock();
    const cfg = new WorkerConfig({
      roles: ["probe"],
      lease_ttl_sec: 30,
      hb_interval_sec: 5,
      pull_poll_ms_default: 70,
      pull_empty_backoff_ms_max: 900,
    });
    const { world } = await setup({ probe: new Pulling() }, cfg, { clock });
    world.artifacts.produce(world.taskId, "u", [], false);
    await world.start({ input_adapter: "pull.from_artifacts", input_args: { from_node: "u" } });
    await until(() => world.artifacts.reads.length === 1);
    expect(world.artifacts.reads[0]?.options).toMatchObject({ pollMs: 70, backoffMaxMs: 900 });
    expect((await world.event("TASK_ACCEPTED")).payload.lease_deadline_ts_ms).toBe(clock.now() + 30_000);
    const beats = () => world.told.filter(({ payload }) => payload.kind === "TASK_HEARTBEAT");
    await until(() => beats().length === 1);
    await clock.advance(4_999);
    expect(beats()).toHaveLength(1);
    await clock.advance(1);
    await until(() => beats().length === 2);
    expect(beats()[1]?.payload.lease_deadline_ts_ms).toBe(clock.now() + 30_000);
    world.artifacts.end(world.taskId, "u", "complete");
    await world.end();
  });

  it("[F-CFG-02] is loaded from a file, and overrides take precedence", () => {
    const folder = mkdtempSync(join(tmpdir(), "longshore-flowkit-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "worker.json");
    writeFileSync(path, JSON.stringify({ roles: ["indexer"], lease_ttl_sec: 30 }));
    expect(WorkerConfig.load({ path, overrides: { roles: ["probe"] } })).toMatchObject({ roles: ["probe"], lease_ttl_sec: 30 });
    expect(WorkerConfig.load(path, { leaseTtlSec: 10 })).toMatchObject({ roles: ["indexer"], lease_ttl_sec: 10 });
    expect(WorkerConfig.load(join(folder, "absent.json"))).toMatchObject({ roles: ["echo"] });
    mkdirSync(join(folder, "configs"));
    writeFileSync(join(folder, "configs", "worker.default.json"), JSON.stringify({ roles: ["found"], lease_ttl_sec: 20 }));
    const before = process.cwd();
    process.chdir(folder);
    try {
      expect(WorkerConfig.load()).toMatchObject({ roles: ["found"], lease_ttl_sec: 20, hb_interval_sec: 20 });
      expect(WorkerConfig.load({ overrides: { lease_ttl_sec: 5 } })).toMatchObject({ roles: ["found"], lease_ttl_sec: 5 });
    } finally {
      process.chdir(before);
    }
    writeFileSync(path, "[");
    expect(() => WorkerConfig.load(path)).toThrow("is not JSON");
  });

  it("an unknown field is refused with the list of fields", () => {
    expect(() => new WorkerConfig({ lease_ttl: 5 } as never)).toThrow(/has the field "lease_ttl", expected kafka_bootstrap, /);
  });
});
