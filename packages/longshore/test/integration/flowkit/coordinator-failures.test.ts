// The coordinator on the embedded bus: tasks that fail, and batches that keep failing.

import { describe, expect, it } from "vitest";
import { deadLettersOf } from "../../../src/protocols/flowkit/server/coordinator/dead-letters.ts";
import { all } from "../../support/all.ts";
import { node, pulls, statsOf, sumOf } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

const batchPolicy = (max: number, dead_letter: boolean) => ({ retry_policy: { max: 0, backoff_sec: 0, batch: { max, dead_letter } } });

describe("a failure", () => {
  it("[T68] that is transient is retried in a higher epoch, after the node's pause", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 1, backoff_sec: 30 } })] });
    const first = await worker.accept();
    await worker.failed(first, "flaky", false);
    const waiting = await world.inState(run, "a", "queued");
    expect(waiting.dueAt - world.clock.now()).toBe(30_000);
    await world.clock.advance(30_000);
    const second = await worker.accept();
    expect(second.attempt_epoch).toBeGreaterThanOrEqual(2);
    await worker.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  // In the reference, the failed node ends as cancelling, like the others. Here it ends as failed.
  it("[T69, A06] that is permanent fails the task and cancels the open nodes, and none of them starts again", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"], { capacity: 2 });
    const nodes = [node("a", "indexer"), node("b", "indexer"), node("c", "indexer", { depends_on: ["a", "b"] })];
    const run = await world.submit({ nodes });
    const [one, two] = [await worker.accept(), await worker.accept()];
    await worker.failed(one, "hard", true);
    expect(await world.ended(run)).toMatchObject({ state: "failed", error: `step ${one.node_id} failed: hard` });
    expect(await worker.signal(two)).toMatchObject({ payload: { sig: "CANCEL", reason: expect.stringContaining("hard") } });
    await worker.cancelled(two);
    await world.inState(run, two.node_id, "cancelled");
    expect(await world.task(run, one.node_id)).toMatchObject({ state: "failed" });
    expect(await world.task(run, "c")).toBeUndefined();
    const other = await world.submit({ nodes: [node("x", "indexer")] });
    expect((await worker.accept()).task_id).toBe(other.id);
  });

  it("[A08] is final when its budget is used up, or when permanent_on has its reason", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const spent = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 1, backoff_sec: 0 } })] });
    await worker.failed(await worker.accept(), "flaky", false);
    await worker.failed(await worker.accept(), "flaky", false);
    expect((await world.ended(spent)).state).toBe("failed");
    const listed = await world.submit({
      nodes: [node("a", "indexer", { retry_policy: { max: 5, backoff_sec: 0, permanent_on: ["quota"] } })],
    });
    await worker.failed(await worker.accept(), "quota", false);
    expect(await world.ended(listed)).toMatchObject({ state: "failed", error: "step a failed: quota" });
    const byDefault = await world.submit({ nodes: [node("a", "indexer")] });
    await worker.failed(await worker.accept(), "schema_mismatch", false);
    expect((await world.ended(byDefault)).state).toBe("failed");
    expect(worker.commands).toHaveLength(4);
  });

  it("[T60] of an upstream ends the nodes that stream from it", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer", "analyzer"], { capacity: 2 });
    const run = await world.submit({ nodes: [node("u", "indexer"), node("d", "analyzer", pulls(["u"]))] });
    const up = await worker.accept();
    await worker.batch(up, "b0", {});
    const down = await worker.accept();
    await worker.failed(up, "lease_expired", true);
    expect((await world.ended(run)).state).toBe("failed");
    await worker.signal(down);
    await worker.cancelled(down);
    expect(await world.inState(run, "d", "cancelled")).toMatchObject({ holder: "w" });
  });

  // The reference has no such rule yet.
  it("[T79] starts only the node that routing.on_failure names, and the task fails at the end", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer", "analyzer"], { capacity: 2 });
    const routing = { on_success: ["succ"], on_failure: ["remed"] };
    const nodes = [node("u", "indexer", { routing }), node("succ", "analyzer", { depends_on: ["u"] }), node("remed", "analyzer")];
    const run = await world.submit({ nodes, edges: [["u", "succ"]] });
    await worker.failed(await worker.accept(), "test_fail", true);
    const remediator = await worker.accept();
    expect(remediator.node_id).toBe("remed");
    await worker.done(remediator);
    expect((await world.ended(run)).state).toBe("failed");
    expect(await world.task(run, "succ")).toMatchObject({ state: "skipped" });
    const well = await world.submit({ nodes, edges: [["u", "succ"]] });
    await worker.done(await worker.accept());
    const next = await worker.accept();
    expect(next.node_id).toBe("succ");
    await worker.done(next);
    expect((await world.ended(well)).state).toBe("succeeded");
    expect(await world.task(well, "remed")).toMatchObject({ state: "skipped" });
  });

  // The reference has no such rule yet.
  it("[T77] explicit edges take precedence over routing.on_success", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer", "analyzer"], { capacity: 3 });
    const nodes = [
      node("src", "indexer", { routing: { on_success: ["should_not_run"] } }),
      node("only_edges", "analyzer", { depends_on: ["src"] }),
      node("should_not_run", "analyzer", { depends_on: ["src"] }),
    ];
    const run = await world.submit({ nodes, edges: [["src", "only_edges"]] });
    await worker.done(await worker.accept());
    await worker.done(await worker.accept());
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(worker.commands.map(({ node_id }) => node_id)).toEqual(["src", "only_edges"]);
    const without = await world.submit({ nodes: [nodes[0], node("should_not_run", "analyzer")].map((one) => ({ ...one })) });
    await worker.done(await worker.accept());
    expect((await worker.accept()).node_id).toBe("should_not_run");
    expect(without.state).toBe("running");
  });
});

describe("a batch that keeps failing", () => {
  it("becomes a dead letter with its reason when its budget is used up, and the node continues without it", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", batchPolicy(1, true)), sumOf("a")] });
    for (const epoch of [1, 3]) {
      const command = await worker.accept();
      expect([command.attempt_epoch, command.payload.dead_letters]).toEqual([epoch, undefined]);
      await worker.batch(command, "b0", { n: 1 });
      await worker.batchFailed(command, "poison", "bad_row");
      await worker.failed(command, "bad_row", false);
    }
    const last = await worker.accept();
    expect(last.payload.dead_letters).toEqual(["poison"]);
    const letter = { node_id: "a", batch_uid: "poison", reason_code: "bad_row", error: "poison went wrong", attempt_epoch: 3, tries: 2 };
    expect(await deadLettersOf(world.engine, run.id)).toEqual([letter]);
    await worker.batch(last, "b2", { n: 2 });
    await worker.done(last, { total: 3 });
    expect(statsOf(await world.ended(run), "a")).toEqual({ n: 3, total: 3 });
    expect(JSON.parse((await world.task(run, "a"))?.output ?? "")).toEqual({
      total: 3,
      dead_letters: [{ batch_uid: "poison", reason_code: "bad_row", error: "poison went wrong", attempt_epoch: 3, tries: 2 }],
    });
    expect(await deadLettersOf(world.engine, run.id)).toEqual([letter]);
    expect(world.coordinator.counts.batchesFailed).toBe(2);
  });

  it("with a permanent error becomes a dead letter at once, and stays one over a restart", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", batchPolicy(5, true))] });
    const first = await worker.accept();
    await worker.batchFailed(first, "poison", "bad_row", true);
    await world.until(async () => world.coordinator.counts.batchesFailed === 1);
    await world.restartCoordinator(() => worker.failed(first, "bad_row", true));
    const second = await worker.accept();
    expect(second.payload.dead_letters).toEqual(["poison"]);
    await worker.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
    await world.until(async () => (await all(world.engine.documents.eachDocument("flowkit-batches"))).length === 0);
  });

  it("fails the node with its reason when dead letters are not allowed", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    for (const more of [batchPolicy(0, false), { retry_policy: { max: 0 } }]) {
      const run = await world.submit({ nodes: [node("a", "indexer", more)] });
      const command = await worker.accept();
      await worker.batchFailed(command, "poison", "bad_row");
      await worker.failed(command, "bad_row", false);
      expect((await world.ended(run)).state).toBe("failed");
      const { output } = (await world.task(run, "a")) as { output: string };
      expect(JSON.parse(output)).toMatchObject({ dead_letters: [{ batch_uid: "poison", reason_code: "bad_row" }] });
    }
  });
});

it("a batch without its own budget becomes a dead letter only when its node fails, and the failure names it once", async () => {
  const world = await openFlowkit();
  const worker = await world.worker("w", ["indexer"]);
  const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 1, backoff_sec: 0 } })] });
  for (const last of [false, true]) {
    const command = await worker.accept();
    expect(command.payload.dead_letters).toBeUndefined();
    expect(await deadLettersOf(world.engine, run.id)).toEqual([]);
    await worker.batchFailed(command, "poison", "bad_row");
    await worker.failed(command, "bad_row", false);
    if (!last) continue;
    expect((await world.ended(run)).state).toBe("failed");
    const letter = { node_id: "a", batch_uid: "poison", reason_code: "bad_row", error: "poison went wrong" };
    expect(await deadLettersOf(world.engine, run.id)).toEqual([{ ...letter, attempt_epoch: command.attempt_epoch, tries: 2 }]);
  }
});

it("a worker whose lease expired is shown as offline until it reports again", async () => {
  const world = await openFlowkit();
  const lost = await world.worker("lost", ["indexer"]);
  const run = await world.submit({ nodes: [node("a", "indexer")] });
  const command = await lost.accept();
  await world.inState(run, "a", "held");
  expect(world.engine.workers.get("lost")?.status).toBe("busy");
  await world.clock.advance(60_000);
  await world.until(async () => world.engine.workers.get("lost")?.status === "offline");
  await lost.beat(command);
  await world.until(async () => world.engine.workers.get("lost")?.status !== "offline");
});
