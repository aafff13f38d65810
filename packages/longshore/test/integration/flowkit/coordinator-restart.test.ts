// Leases, workers that disappear, and a coordinator that is restarted.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { Workers } from "../../../src/engine/board/workers.ts";
import { Registry } from "../../../src/protocols/flowkit/server/coordinator/registry.ts";
import { TaskViews } from "../../../src/protocols/flowkit/server/task-views.ts";
import { all } from "../../support/all.ts";
import { node, statsOf, sumOf } from "../../support/flowkit-graphs.ts";
import { openFlowkit } from "../../support/flowkit-world.ts";

function folder(): string {
  const directory = mkdtempSync(join(tmpdir(), "longshore-flowkit-"));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

describe("a lease", () => {
  it("[T57, T73] lasts as long as its worker requests, from each of its heartbeats on", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    worker.leaseMs = 2_000;
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    const { holdUntil } = await world.inState(run, "a", "held");
    expect(holdUntil).toBe(world.clock.now() + 2_000);
    await world.clock.advance(1_500);
    await worker.beat(command);
    const moved = await world.until(async () => {
      const task = await world.task(run, "a");
      return task?.holdUntil === world.clock.now() + 2_000 && task;
    });
    expect(moved.holdUntil).toBeGreaterThan(holdUntil as number);
  });

  it("[T59] is counted only by the worker's clock, so a clock that is wrong by hours changes nothing", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    for (const skewMs of [-7_200_000, 7_200_000]) {
      const ts_ms = world.clock.now() + skewMs;
      await world.clock.advance(1_000);
      await worker.says(command, "TASK_HEARTBEAT", { lease_id: "l", lease_deadline_ts_ms: ts_ms + 60_000 }, { ts_ms });
      const until = world.clock.now() + 60_000;
      await world.until(async () => (await world.task(run, "a"))?.holdUntil === until);
    }
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("[T59] never ends sooner by a heartbeat: a deadline before the last one, or in the past, changes nothing", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    worker.leaseMs = 2_000;
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    const ends: number[] = [];
    for (const leaseMs of [2_000, 1_500, -60_000, 3_500]) {
      await world.clock.advance(100);
      await worker.says(command, "TASK_HEARTBEAT", { lease_id: "l", lease_deadline_ts_ms: world.clock.now() + leaseMs });
      // Events of the same time are sent after it.
      await worker.batch(command, `b${leaseMs}`, {});
      await world.until(async () => (await world.partsOf(run, "a")).length === ends.length + 1);
      ends.push(((await world.task(run, "a"))?.holdUntil ?? 0) - world.clock.now());
    }
    expect(ends).toEqual([2_000, 2_000, 2_000, 3_500]);
    // A wrong one also does no harm in one group with a correct one.
    await world.bus.publish(
      [5_000, 10].map((leaseMs) =>
        worker.record(command, "TASK_HEARTBEAT", { lease_id: "l", lease_deadline_ts_ms: world.clock.now() + leaseMs }),
      ),
    );
    await world.until(async () => (await world.task(run, "a"))?.holdUntil === world.clock.now() + 5_000);
    await world.clock.advance(4_999);
    expect(await world.task(run, "a")).toMatchObject({ state: "held", grant: 1 });
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("[A07] that ends gives the node to another worker in a higher epoch, and reports of the first worker are refused", async () => {
    const world = await openFlowkit();
    const lost = await world.worker("lost", ["indexer"]);
    lost.leaseMs = 3_000;
    const run = await world.submit({ nodes: [node("a", "indexer"), sumOf("a")] });
    const first = await lost.accept();
    await lost.batch(first, "b0", { n: 1 });
    await world.until(async () => (await world.partsOf(run, "a")).length === 1);
    await lost.stop();
    await world.clock.advance(3_000);
    const other = await world.worker("other", ["indexer"]);
    const second = await other.accept();
    expect(second.attempt_epoch).toBeGreaterThan(first.attempt_epoch);
    await lost.done(first, { n: 100 });
    await other.batch(second, "b1", { n: 2 });
    await other.done(second);
    expect(statsOf(await world.ended(run), "a")).toEqual({ n: 3 });
  });

  // The reference defers the whole task after a soft window, and continues. Here nothing happens before the lease ends.
  it("[T50] that has not ended keeps the node of a silent worker, which then finishes it", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    await world.clock.advance(59_000);
    expect(await world.task(run, "a")).toMatchObject({ state: "held", grant: 1 });
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  // The reference fails the whole task after a hard window of silence. Here another worker gets the node, as often as its policy allows.
  it("[T51] that ends more often than the node's policy allows fails the task", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { lost: 0 } })] });
    await worker.accept();
    await world.inState(run, "a", "held");
    await world.clock.advance(60_000);
    expect(await world.ended(run)).toMatchObject({ state: "timed-out", error: "step a failed: lease expired" });
    const views = new TaskViews({ ...world.engine, tasks: world.coordinator.tasks });
    expect(await views.task(run.id)).toMatchObject({ status: "failed", graph: { nodes: [{ status: "failed" }] } });
  });
});

describe("a command that no worker takes", () => {
  it("is sent again in the next epoch, to another reader of the topic", async () => {
    const sent: (number | undefined)[] = [];
    const world = await openFlowkit({
      config: { offer_sec: 10 },
      bus: (bus) =>
        Object.assign(Object.create(bus), {
          subscribe: bus.subscribe.bind(bus),
          ensure: bus.ensure.bind(bus),
          close: bus.close.bind(bus),
          publish: (records: Parameters<typeof bus.publish>[0]) => {
            for (const { topic, retry } of records) if (topic.startsWith("cmd.")) sent.push(retry);
            return bus.publish(records);
          },
        }),
    });
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const first = await worker.next();
    await world.clock.advance(10_000);
    const second = await worker.next();
    expect(second.attempt_epoch).toBeGreaterThan(first.attempt_epoch);
    await worker.accepts(second);
    await worker.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(sent).toEqual([0, 1]);
    expect(world.coordinator.counts.lapsed).toBe(1);
  });

  it("when two workers get one command, the first to accept it has it, and the other is cancelled", async () => {
    const world = await openFlowkit();
    const [one, two] = [await world.worker("one", ["indexer"]), await world.worker("two", ["indexer"])];
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await world.until(async () => one.commands.length + two.commands.length === 1);
    const [command] = [...one.commands, ...two.commands];
    if (command === undefined) throw new Error("There was no command.");
    await one.accepts(command);
    await world.inState(run, "a", "held");
    await two.accepts(command);
    await two.signal(command);
    await one.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.task(run, "a")).toMatchObject({ holder: "one" });
  });
});

describe("a worker that returns", () => {
  // In the reference the node stays with the worker, which never continues it. Here it begins again at once in the next epoch.
  it("[T52] under its name and reports its earlier node gives up this node, without using an attempt", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 0 } })] });
    const { task_id, node_id, step_type, attempt_epoch } = await worker.accept();
    await world.inState(run, "a", "held");
    const resume = {
      task_id,
      node_id,
      step_type,
      attempt_epoch,
      lease_id: "l",
      cancel_token: "",
      started_at_ms: 1,
      state: "running",
      checkpoint: {},
    };
    await worker.announce({ resume });
    const again = await worker.accept();
    expect(again.attempt_epoch).toBeGreaterThan(attempt_epoch);
    await worker.done(again);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.task(run, "a")).toMatchObject({ failures: 0, lost: 1 });
  });

  it("within its lease and continues keeps its epoch", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    await worker.announce();
    await worker.says(command, "TASK_RESUMED", { lease_id: "l", lease_deadline_ts_ms: world.clock.now() + 60_000 });
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.task(run, "a")).toMatchObject({ grant: 1 });
  });

  // The reference waits before each start to find out whether a worker runs the node. Here leases show this, so there is no wait.
  it("[T54, T55] starts nodes at once, both first attempts and retries", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 1, backoff_sec: 0 } })] });
    const startedAt = world.clock.now();
    await worker.failed(await worker.accept(), "flaky", false);
    await worker.done(await worker.accept());
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(world.clock.now()).toBe(startedAt);
  });
});

describe("a coordinator that returns", () => {
  it("shows earlier workers as unknown with their holds, until they report", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"], { capacity: 3 });
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await worker.accept();
    const task = await world.inState(run, "a", "held");
    // The workers of another process.
    const workers = new Workers({ clock: world.clock });
    const registry = new Registry({ ...world.engine, workers, log: { debug() {}, info() {}, warn() {} }, changed() {} });
    onTestFinished(() => registry.close());
    await registry.load();
    workers.changed(task);
    registry.taskChanged(task);
    expect([...workers.views()]).toMatchObject([
      { id: "w", protocol: "flowkit", status: "unheard", does: ["indexer"], tasks: [{ step: "a" }] },
    ]);
    // Commands are still sent to them, and wait on the bus.
    expect(registry.room("indexer")).toBe(2);
    registry.heard("w", "indexer");
    expect(workers.get("w")?.status).toBe("busy");
  });

  it("[T40, A16] reads the events that were sent while it was down", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer"), node("b", "indexer", { depends_on: ["a"] }), sumOf("a")] });
    const command = await worker.accept();
    await worker.batch(command, "b0", { n: 1 });
    await world.inState(run, "a", "held");
    await world.restartCoordinator(async () => {
      await worker.batch(command, "b1", { n: 2 });
      await worker.done(command);
    });
    const next = await worker.accept();
    expect(next.node_id).toBe("b");
    await worker.done(next);
    expect(statsOf(await world.ended(run), "a")).toEqual({ n: 3 });
  });

  it("[T71] takes over open nodes in the same epoch, without a second command", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    await world.restartCoordinator();
    await worker.beat(command);
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.task(run, "a")).toMatchObject({ grant: 1, holder: "w" });
    expect(worker.commands).toHaveLength(1);
  });

  it("[T22] counts a batch once that it receives before and after the restart", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer"), sumOf("a")] });
    const command = await worker.accept();
    await worker.batch(command, "b0", { n: 4 });
    await world.until(async () => (await world.partsOf(run, "a")).length === 1);
    await world.restartCoordinator(() => worker.batch(command, "b0", { n: 4 }));
    await worker.batch(command, "b0", { n: 4 });
    await worker.batch(command, "b1", { n: 5 });
    await worker.done(command, { total: 9 });
    await worker.done(command, { total: 9 });
    expect(statsOf(await world.ended(run), "a")).toEqual({ n: 9, total: 9 });
  });

  it("knows its workers before they announce themselves again, and removes those that are silent", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    await world.until(async () => (await all(world.engine.documents.eachDocument("flowkit-worker"))).length === 1);
    await world.restartCoordinator();
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await worker.done(await worker.accept());
    expect((await world.ended(run)).state).toBe("succeeded");
    await world.clock.advance(300_000);
    await world.until(async () => (await all(world.engine.documents.eachDocument("flowkit-worker"))).length === 0);
    expect(world.engine.workers.get("w")?.status).toBe("offline");
    const waiting = await world.submit({ nodes: [node("b", "indexer")] });
    expect(await world.task(waiting, "b")).toMatchObject({ state: "queued" });
    await worker.announce();
    await worker.done(await worker.accept());
    expect((await world.ended(waiting)).state).toBe("succeeded");
  });

  it("sends a query for a node whose worker is unknown, and the worker that replies keeps the node", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    const command = await worker.accept();
    await world.inState(run, "a", "held");
    const queries = await world.spy(["query.tasks.v1"]);
    await world.restartCoordinator(async () => {
      await world.engine.documents.removeDocument("flowkit-worker", "w");
      await world.engine.documents.keepDocument({
        kind: "flowkit-worker",
        name: "x",
        version: 1,
        body: '{"roles":["indexer"],"capacity":1,"version":""}',
      });
    });
    await world.until(async () => queries.length === 1);
    expect(queries[0]).toMatchObject({
      task_id: run.id,
      node_id: "a",
      attempt_epoch: 1,
      payload: { query: "TASK_DISCOVER", want_epoch: 1 },
    });
    await world.clock.advance(30_000);
    const lease = { worker_id: "w", lease_id: "l", deadline_ts_ms: world.clock.now() + 60_000 };
    const payload = {
      reply: "TASK_SNAPSHOT",
      worker_id: "w",
      run_state: "running",
      attempt_epoch: 1,
      lease,
      progress: {},
      artifacts: null,
    };
    const reply = worker.record(command, "", {}, { msg_type: "reply", payload });
    await world.bus.publish([{ ...reply, topic: "reply.tasks.v1", key: run.id }]);
    const until = world.clock.now() + 60_000;
    await world.until(async () => (await world.task(run, "a"))?.holdUntil === until);
    await worker.done(command);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("continues from its data file with everything", async () => {
    const directory = folder();
    const before = await openFlowkit({ directory });
    const worker = await before.worker("w", ["indexer"]);
    const run = await before.submit({ nodes: [node("a", "indexer"), node("b", "indexer", { depends_on: ["a"] })] });
    const command = await worker.accept();
    await worker.batch(command, "b0", { n: 1 });
    await before.until(async () => (await before.partsOf(run, "a")).length === 1);
    await worker.stop();
    await before.coordinator.stop();
    await before.bus.close();
    await before.engine.close();
    const after = await openFlowkit({ directory });
    const same = await after.worker("w", ["indexer"]);
    await same.done(command);
    await same.done(await same.accept());
    expect((await after.ended(run)).state).toBe("succeeded");
    expect(await after.partsOf(run, "a")).toEqual([{ n: 1 }]);
  });
});
