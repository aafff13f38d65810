import { describe, expect, it } from "vitest";
import { node, pulls } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

describe("cancelling", () => {
  // In the reference, the node becomes deferred and begins again, and later nodes keep the task open without a limit.
  it("[T41, T72, A05] stops the worker of a running node, and later nodes never start", async () => {
    const world = await openFlowkit({ config: { cancel_grace_sec: 5 } });
    const worker = await world.worker("w", ["indexer"], { capacity: 2 });
    const nodes = [node("u", "indexer"), node("d", "indexer", { depends_on: ["u"] }), node("streams", "indexer", pulls(["u"]))];
    const run = await world.submit({ nodes });
    const command = await worker.accept();
    await world.inState(run, "u", "held");
    await world.coordinator.tasks.cancel(run.id, "user_request");
    await world.inState(run, "u", "cancelling");
    expect(await worker.signal(command)).toMatchObject({
      msg_type: "event",
      role: "coordinator",
      target_worker_id: "w",
      attempt_epoch: 1,
      payload: { sig: "CANCEL", reason: "user_request", cancel_token: null, deadline_ts_ms: world.clock.now() + 5_000 },
    });
    // A report that it was about to send no longer starts anything.
    await worker.batch(command, "b0", {});
    await worker.cancelled(command);
    expect(await world.inState(run, "u", "cancelled")).toMatchObject({ error: "cancelled", holder: "w" });
    for (const id of ["d", "streams"]) expect(await world.task(run, id)).toBeUndefined();
    expect(await world.run(run.id)).toMatchObject({ state: "cancelled", error: "user_request" });
    const other = await world.submit({ nodes: [node("x", "indexer")] });
    expect((await worker.accept()).task_id).toBe(other.id);
  });

  // In the reference, such nodes and their task stay cancelling without a limit.
  it("[T43, A05] ends the task at once when no node has started, and nothing starts when workers connect", async () => {
    const world = await openFlowkit();
    const run = await world.submit({ nodes: [node("a", "indexer"), node("b", "indexer", { depends_on: ["a"] })] });
    await world.coordinator.tasks.cancel(run.id);
    expect(await world.ended(run)).toMatchObject({ state: "cancelled", error: "user_request" });
    expect(await world.task(run, "a")).toMatchObject({ state: "cancelled", grant: 0 });
    expect(await world.task(run, "b")).toBeUndefined();
    const worker = await world.worker("w", ["indexer"]);
    const other = await world.submit({ nodes: [node("x", "indexer")] });
    expect((await worker.accept()).task_id).toBe(other.id);
  });

  it("[T44] prevents the retry of a waiting node", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 5, backoff_sec: 60 } })] });
    await worker.failed(await worker.accept(), "flaky", false);
    await world.inState(run, "a", "queued");
    await world.coordinator.tasks.cancel(run.id);
    await world.inState(run, "a", "cancelled");
    await world.clock.advance(120_000);
    const other = await world.submit({ nodes: [node("x", "indexer")] });
    expect((await worker.accept()).task_id).toBe(other.id);
  });

  it("[A06] makes a sent command void that no worker has accepted: a worker that accepts it later gets a cancel", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.next();
    await world.coordinator.tasks.cancel(run.id);
    await world.inState(run, "a", "cancelled");
    await worker.accepts(command);
    await worker.signal(command);
    await worker.cancelled(command);
    await world.until(async () => world.coordinator.counts.stale === 2);
    expect(await world.task(run, "a")).toMatchObject({ state: "cancelled" });
    const other = await world.submit({ nodes: [node("x", "indexer")] });
    expect((await worker.accept()).task_id).toBe(other.id);
  });

  it("does not wait for a worker that does not stop by the deadline, and its later reports are stale", async () => {
    const world = await openFlowkit({ config: { cancel_grace_sec: 5 } });
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    await world.coordinator.tasks.cancel(run.id);
    await worker.signal(command);
    await worker.beat(command);
    await world.clock.advance(5_000);
    expect(await world.inState(run, "a", "cancelled")).toMatchObject({ error: "cancelled; its worker did not stop in time" });
    await worker.done(command, { n: 1 });
    await world.until(async () => world.coordinator.counts.stale === 1);
    expect(await world.task(run, "a")).toMatchObject({ state: "cancelled", output: null });
  });

  it("is sent again after a restart of the coordinator", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    await world.restartCoordinator(async () => {
      await world.engine.runs.tell(run.id, { kind: "cancel" });
    });
    await worker.signal(command);
    await worker.cancelled(command);
    await world.inState(run, "a", "cancelled");
  });

  it("reports that an unknown task does not exist", async () => {
    const world = await openFlowkit();
    expect(await world.coordinator.tasks.cancel("nowhere")).toBeUndefined();
  });
});

describe("a worker that reports cancelled without a cancel", () => {
  it("because it stops gives its node to another worker at once, without using an attempt", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 0, lost: 0 } })] });
    const first = await worker.accept();
    await worker.cancelled(first, "shutdown");
    const second = await worker.accept();
    expect(second.attempt_epoch).toBeGreaterThan(first.attempt_epoch);
    await worker.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("for another reason uses the budget of lost workers", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 0, lost: 1 } })] });
    await worker.cancelled(await worker.accept(), "lease_lost");
    await worker.cancelled(await worker.accept(), "lease_lost");
    expect(await world.ended(run)).toMatchObject({ error: "step a failed: cancelled by its worker: lease_lost" });
  });
});
