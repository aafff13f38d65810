// The coordinator on the embedded bus: stale events and unreadable records.

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { fn, node, statsOf, sumOf } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

type World = Awaited<ReturnType<typeof openFlowkit>>;
type Worker = Awaited<ReturnType<World["worker"]>>;

/** A node that the worker `old` holds. */
async function heldByOld(world: World) {
  const old = await world.worker("old", ["indexer"]);
  const run = await world.submit({ nodes: [node("a", "indexer")] });
  const first = await old.accept();
  await world.inState(run, "a", "held");
  return { old, run, first };
}

/** The worker sends nothing for the length of its lease. Returns the worker that gets the node then. */
async function lostBy(old: Worker, world: World): Promise<Worker> {
  await world.clock.advance(60_000);
  const fresh = await world.worker("fresh", ["indexer"]);
  await old.stop();
  return fresh;
}

describe("a stale event", () => {
  it("[T42, T58] of an earlier epoch is ignored, and its worker is cancelled and cannot take over", async () => {
    const world = await openFlowkit();
    const { old, run, first } = await heldByOld(world);
    const fresh = await lostBy(old, world);
    const second = await fresh.accept();
    expect(second.attempt_epoch).toBeGreaterThan(first.attempt_epoch);
    await world.inState(run, "a", "held");
    const watching = await world.spy(["signals.v1"]);
    await old.beat(first);
    await old.batch(first, "stale", { n: 1 });
    await world.until(async () => watching.length > 0);
    expect(watching[0]).toMatchObject({ target_worker_id: "old", attempt_epoch: first.attempt_epoch, payload: { sig: "CANCEL" } });
    expect(await world.task(run, "a")).toMatchObject({ holder: "fresh", grant: second.attempt_epoch });
    await fresh.done(second);
    await world.ended(run);
    expect(await world.partsOf(run, "a")).toEqual([]);
    expect(world.coordinator.counts.stale).toBeGreaterThanOrEqual(2);
  });

  // A worker of the reference that waits for input mistakes a cancel for the end of its input, and reports its node as complete.
  it("of a replaced worker does not cancel it when it may be a foreign worker, except when its node is no longer wanted", async () => {
    const world = await openFlowkit({ results: { adopt: async () => {} } });
    const { old, run, first } = await heldByOld(world);
    const fresh = await lostBy(old, world);
    await fresh.accept();
    await world.inState(run, "a", "held");
    const watching = await world.spy(["signals.v1"]);
    await old.beat(first);
    await world.until(async () => world.coordinator.counts.stale > 0);
    await world.coordinator.tasks.cancel(run.id, "enough");
    await world.until(async () => watching.length > 0);
    expect(watching.map(({ target_worker_id }) => target_worker_id)).toEqual(["fresh"]);
    await fresh.stop();
    await world.clock.advance(60_000);
    await world.inState(run, "a", "cancelled");
    await old.beat(first);
    await world.until(async () => watching.length > 1);
    expect(watching[1]).toMatchObject({ target_worker_id: "old", attempt_epoch: first.attempt_epoch, payload: { sig: "CANCEL" } });
  });

  it("[A02] claims of a lost attempt are released before the next command is sent, but not before the first command", async () => {
    const released: [name: unknown, epoch: number, sent: number][] = [];
    const world = await openFlowkit({
      results: { release: async (name, epoch) => void released.push([name, epoch, world.coordinator.counts.started]) },
    });
    const { old, run } = await heldByOld(world);
    expect(released).toEqual([]);
    const fresh = await lostBy(old, world);
    const { attempt_epoch } = await fresh.accept();
    expect(released.at(-1)).toEqual([{ task_id: run.id, node_id: "a" }, attempt_epoch, world.coordinator.counts.started - 1]);
  });

  // The reference stores such events in a separate log before it drops them. Here they are counted.
  it("[T45, T70] about a batch of an earlier epoch, or after the end, leaves no metrics", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 1, backoff_sec: 0 } }), sumOf("a")] });
    const first = await worker.accept();
    await worker.failed(first, "flaky", false);
    const second = await worker.accept();
    await worker.batch(first, "old", { n: 100 });
    await worker.batch(first, "old", { n: 100 });
    await worker.batch(second, "b0", { n: 1 });
    // It also does not change a later attempt's result of the same batch.
    await worker.batch(first, "b0", { n: 100 });
    await worker.batch({ ...first, attempt_epoch: 0 }, "b0", { n: 100 });
    await worker.done(second);
    expect(statsOf(await world.ended(run), "a")).toEqual({ n: 1 });
    await worker.batch(second, "late", { n: 100 });
    await world.until(async () => world.coordinator.counts.stale === 5);
    expect(await world.partsOf(run, "a")).toEqual([{ n: 1 }]);
  });

  it("about a node that was never started, or about another coordinator's task, changes nothing and stops no worker", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer"), node("b", "indexer", { depends_on: ["a"] })] });
    const command = await worker.accept();
    await worker.failed({ ...command, node_id: "b", attempt_epoch: 0 }, "forged", true);
    await worker.beat({ ...command, task_id: "elsewhere" });
    await worker.beat({ ...command, node_id: "nowhere" });
    const waiting = await world.submit({ nodes: [node("q", "nobody")] });
    const never = { ...command, task_id: waiting.id, node_id: "q", attempt_epoch: 0 };
    await worker.beat(never);
    await worker.batch(never, "b0", {});
    await worker.failed(never, "forged", true);
    await world.until(async () => world.coordinator.counts.stale === 6);
    expect(worker.signals).toEqual([]);
    expect(await world.task(waiting, "q")).toMatchObject({ state: "queued", grant: 0, holder: null });
    await worker.done(command);
    await worker.done(await worker.accept());
    expect((await world.ended(run)).state).toBe("succeeded");
  });
});

describe("an unreadable record", () => {
  it("[A15] such as an event without worker_id is skipped and reported once, and the next record counts", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    const topic = "status.indexer.v1";
    await world.bus.publish([
      { topic, key: null, value: "{" },
      { topic, key: null, value: "[]" },
      worker.record(command, "TASK_DONE", { worker_id: null }),
      worker.record(command, "NO_SUCH_KIND", {}),
      worker.record(command, "BATCH_OK", { metrics: {} }),
      worker.record(command, "BATCH_OK", { worker_id: null, batch_uid: "b0", metrics: {} }),
      { topic: "workers.announce.v1", key: null, value: "nonsense" },
      { topic: "reply.tasks.v1", key: null, value: "nonsense" },
    ]);
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.partsOf(run, "a")).toEqual([]);
    await world.until(async () => world.coordinator.counts.malformed === 8);
    // Announcements and replies are still read. Their mistakes are checked below.
    const next = await world.worker("next", ["analyzer"]);
    await world.submit({ nodes: [node("b", "analyzer")] });
    await next.accept();
    const told = world.warnings.map((warning) => warning.replace(/\(.*/, "").replace(/record \S+/, "record")).sort();
    expect(told).toEqual([
      "The record is skipped: it is not JSON in UTF-8 ",
      "The record is skipped: it is not JSON in UTF-8 ",
      "The record is skipped: it is not JSON in UTF-8 ",
      'The record is skipped: payload.kind is "NO_SUCH_KIND", which is not known',
      "The record is skipped: payload.worker_id is null, expected a text",
    ]);
  });

  it("of a batch that breaks off after its name is skipped, except when the batch is already stored", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    const { id: taskId } = await world.inState(run, "a", "held");
    await world.engine.parts.put({ taskId, grant: command.attempt_epoch, holder: "w" }, [{ uid: "kept", value: '{"n":1}' }]);
    const broken = ["kept", "lost"].map((batch_uid) => {
      const record = worker.record(command, "BATCH_OK", { batch_uid, metrics: { n: 2 } });
      return { ...record, value: record.value.slice(0, -10) };
    });
    await world.bus.publish(broken);
    await worker.batch(command, "next", { n: 3 });
    await worker.done(command);
    await world.ended(run);
    expect(await world.partsOf(run, "a")).toEqual([{ n: 1 }, { n: 3 }]);
    expect(world.coordinator.counts).toMatchObject({ batches: 2, malformed: 1 });
    expect(world.warnings).toEqual([expect.stringContaining("is skipped: it is not JSON in UTF-8")]);
  });

  it("a batch whose name cannot be stored is stored with a valid name", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await worker.batch(command, `${"x".repeat(600)}\u0000`, { n: 1 });
    await worker.done(command);
    await world.ended(run);
    expect(await world.partsOf(run, "a")).toEqual([{ n: 1 }]);
    expect(world.warnings).toEqual([]);
  });

  it.each([true, false])("[A23] a command that is too large to be sent fails its task with the reason (outbox: %s)", async (outbox) => {
    const world = await openFlowkit({ outbox });
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { io: { input_inline: { blob: "x".repeat(1_100_000) } } })] });
    expect(await world.ended(run)).toMatchObject({
      state: "failed",
      error: expect.stringMatching(/^step a failed: .*1100\d\d\d.*1000000/),
    });
    expect(worker.commands).toEqual([]);
  });

  it("[F-RECH-06] rechunking without the key of a list is refused when the coordinator is strict", async () => {
    const nodesWith = (more: JsonObject) => {
      const input_inline = { input_adapter: "pull.from_artifacts.rechunk:size", input_args: { from_node: "a", size: 2, ...more } };
      return [node("a", "t"), node("b", "t", { depends_on: ["a"], io: { input_inline } })];
    };
    const strict = await openFlowkit({ config: { strict_input_adapters: true } });
    await expect(strict.submit({ nodes: nodesWith({}) })).rejects.toThrow(
      "graph.nodes[1].io.input_inline.input_args are refused by pull.from_artifacts.rechunk:size: missing 'meta_list_key' (required by strict_input_adapters)",
    );
    expect((await strict.submit({ nodes: nodesWith({ meta_list_key: "skus" }) })).state).toBe("running");
    const lenient = await openFlowkit();
    expect((await lenient.submit({ nodes: nodesWith({}) })).state).toBe("running");
  });

  it("[A13] a graph that can never run is refused when it is submitted, with the place", async () => {
    const world = await openFlowkit();
    const twice = { nodes: [node("a", "t"), node("a", "t")] };
    await expect(world.submit(twice)).rejects.toMatchObject({
      code: "LONGSHORE_BAD_DEFINITION",
      detail: { field: "graph.nodes[1].node_id" },
    });
    const nowhere = { nodes: [node("a", "t", { depends_on: ["ghost"] })] };
    await expect(world.submit(nowhere)).rejects.toMatchObject({ detail: { field: "graph.nodes[0].depends_on[0]" } });
    const circle = { nodes: [node("a", "t", { depends_on: ["b"] }), node("b", "t", { depends_on: ["a"] })] };
    await expect(world.submit(circle)).rejects.toMatchObject({ code: "LONGSHORE_BAD_DEFINITION" });
    await expect(world.submit({ nodes: [fn("f", "unknown", {})] })).rejects.toThrow(/graph.nodes\[0\].io.fn is "unknown"/);
    const badSize = { input_adapter: "pull.from_artifacts.rechunk:size", input_args: { from_node: "a", size: 0 } };
    await expect(
      world.submit({ nodes: [node("a", "t"), node("b", "t", { depends_on: ["a"], io: { input_inline: badSize } })] }),
    ).rejects.toThrow(
      "graph.nodes[1].io.input_inline.input_args are refused by pull.from_artifacts.rechunk:size: missing or invalid 'size'",
    );
    await expect(world.coordinator.tasks.create({ params: 1, graph: {} })).rejects.toMatchObject({ detail: { field: "params" } });
    expect((await world.engine.reader.runs({ limit: 10 })).items).toEqual([]);
  });
});
