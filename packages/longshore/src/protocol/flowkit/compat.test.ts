// The reference's classes, used as its guide does, on the embedded bus.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { flowkitWorld } from "../../../test/support/flowkit-played.ts";
import type { JsonObject } from "../../json.ts";
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

async function setup(handlers: { [role: string]: RoleHandler }, cfg: WorkerConfig) {
  const world = await flowkitWorld({ roles: cfg.roles });
  const worker = new Worker({ db: world.artifacts, cfg, handlers, bus: world.bus, logger: false });
  onTestFinished(() => worker.stop());
  await worker.start();
  return { world, worker };
}

describe("the quick start", () => {
  it("[F-QS-03, F-QS-05, F-QS-06] a handler with batches of its own and nothing else runs", async () => {
    const { world } = await setup({ processor: new MyHandler() }, new WorkerConfig({ roles: ["processor"] }));
    await world.start(null, { role: "processor" });
    expect((await world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: {} });
    expect((await world.event("BATCH_OK")).payload).toMatchObject({ batch_uid: "b1", metrics: { count: 3 } });
    expect((await world.event("WORKER_ONLINE")).payload).toMatchObject({ type: "processor", capacity: { tasks: 1 } });
  });

  it("[F-QS-01, F-QS-02] everything that it names comes from one place, and starting twice changes nothing", async () => {
    const { world, worker } = await setup({ processor: new MyHandler() }, new WorkerConfig({ roles: ["processor"] }));
    await worker.start();
    await world.start(null, { role: "processor" });
    await world.end();
    await worker.stop();
    await worker.stop();
    const { payload } = await world.event("WORKER_OFFLINE");
    const told = (kind: string) => world.told.filter((each) => each.payload.kind === kind);
    expect([told("BATCH_OK").length, told("WORKER_OFFLINE").length]).toEqual([1, 1]);
    for (const each of told("WORKER_ONLINE")) expect(each.payload.worker_id).toBe(payload.worker_id);
  });

  it("[F-QS-04] batches and results are made with named fields, in either spelling", () => {
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

  it("without a database it is refused by name", () => {
    expect(() => new Worker({ db: undefined as never })).toThrow("db is absent");
  });
});

describe("the handler interface", () => {
  class Probe extends RoleHandler {
    override readonly role = "probe";
    readonly calls: unknown[] = [];

    override async init(run: RunInfo) {
      this.calls.push(["init", run.role, run.attempt_epoch]);
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

  it("[F-HAND-01, F-HAND-02, F-HAND-04] is called in order, with what the guide says", async () => {
    const probe = new Probe();
    const { world } = await setup({ probe }, new WorkerConfig({ roles: ["probe"] }));
    await world.start({ a: 1 });
    await world.end();
    expect(probe.calls).toEqual([
      ["init", "probe", 1],
      ["load", null, { a: 1 }],
      ["process", { input_ref: {}, input_inline: { a: 1 } }, undefined],
      ["finalize"],
    ]);
  });

  it("[F-HAND-05] finalize brings the node's metrics and reference, or null for none", async () => {
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
    expect((await silent.world.end()).payload).toMatchObject({ kind: "TASK_DONE", metrics: {} });
  });

  it("[F-BP-01] each run has a scratch place of its own: nothing is carried from one to the next", async () => {
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

  it("the defaults are one batch of what was loaded, counted as processed", async () => {
    class Bare extends RoleHandler {
      override readonly role = "probe";
    }
    const { world } = await setup({ probe: new Bare() }, new WorkerConfig({ roles: ["probe"] }));
    await world.start({ a: 1 });
    await world.end();
    expect((await world.event("BATCH_OK")).payload.metrics).toEqual({ processed: 1 });
  });

  it("the role echo has a handler of its own", async () => {
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

  it("are refused at the start, by name and with the handlers that there are", async () => {
    const message = 'roles has "procesor", "ghost" without a handler, expected roles among those that have one: "echo", "processor".';
    expect(await refused(["echo", "procesor", "ghost"], { processor: new MyHandler() })).toBe(message);
    expect(await refused(["toString"], {})).toMatch(/^roles has "toString" without a handler/);
  });

  it("are refused as well where the handler is there by name only", async () => {
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
    expect(new WorkerConfig()).toMatchObject({ roles: ["echo"], worker_id: null, worker_version: "2.0.0", strict_input_adapters: false });
  });

  it("[F-CFG-02] is loaded from a file, over which the overrides go", () => {
    const folder = mkdtempSync(join(tmpdir(), "longshore-flowkit-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "worker.json");
    writeFileSync(path, JSON.stringify({ roles: ["indexer"], lease_ttl_sec: 30 }));
    expect(WorkerConfig.load({ path, overrides: { roles: ["probe"] } })).toMatchObject({ roles: ["probe"], lease_ttl_sec: 30 });
    expect(WorkerConfig.load(path, { leaseTtlSec: 10 })).toMatchObject({ roles: ["indexer"], lease_ttl_sec: 10 });
    expect(WorkerConfig.load(join(folder, "absent.json"))).toMatchObject({ roles: ["echo"] });
    writeFileSync(path, "[");
    expect(() => WorkerConfig.load(path)).toThrow("is not JSON");
  });

  it("a field that nobody knows is refused with those that there are", () => {
    expect(() => new WorkerConfig({ lease_ttl: 5 } as never)).toThrow(/has the field "lease_ttl", expected kafka_bootstrap, /);
  });
});
