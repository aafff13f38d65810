// How many nodes run at the same time, and on which workers. The reference does not have these limits yet, but has names for them, which are
// used here.

import { describe, expect, it } from "vitest";
import type { JsonObject } from "../../../src/core/json/json.ts";
import { node } from "../../support/flowkit-graphs.ts";
import { openFlowkit, type ScriptedWorker } from "../../support/flowkit-world.ts";

type World = Awaited<ReturnType<typeof openFlowkit>>;

const pullFrom = (source: string) => ({ input_adapter: "pull.from_artifacts", input_args: { from_nodes: [source] } });
const roots = (type: string, count: number) => Array.from({ length: count }, (_, at) => node(`${type}-${at}`, type));

/** Ends all running nodes, one by one. Returns the largest number of running nodes of each type. */
async function drain(world: World, workers: readonly ScriptedWorker[], total: number): Promise<Map<string, number>> {
  const most = new Map<string, number>();
  const taken = new Map(workers.map((worker) => [worker, 0]));
  for (let ended = 0; ended < total; ended++) {
    await world.until(async () => workers.some((worker) => worker.commands.length > (taken.get(worker) ?? 0)));
    // When nothing changes any more, all nodes that can start have started.
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    const open = workers.flatMap((worker) => worker.commands.slice(taken.get(worker)).map((command) => ({ worker, command })));
    for (const type of ["all", ...new Set(open.map(({ command }) => command.step_type))]) {
      const count = type === "all" ? open.length : open.filter(({ command }) => command.step_type === type).length;
      most.set(type, Math.max(most.get(type) ?? 0, count));
    }
    const next = open[0];
    if (next === undefined) throw new Error("Nothing is at work.");
    taken.set(next.worker, (taken.get(next.worker) ?? 0) + 1);
    await next.worker.accepts(next.command);
    await next.worker.done(next.command);
  }
  return most;
}

describe("limits", () => {
  it("[T46] max_global_running holds over all nodes of a task", async () => {
    const world = await openFlowkit({ config: { max_global_running: 2 } });
    const workers = [await world.worker("a", ["slow"]), await world.worker("b", ["slow"]), await world.worker("c", ["slow"])];
    const run = await world.submit({ nodes: roots("slow", 5) });
    expect((await drain(world, workers, 5)).get("all")).toBe(2);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("[T47] max_type_concurrency holds for each type", async () => {
    const world = await openFlowkit({ config: { max_global_running: 99, max_type_concurrency: { slow: 1, fast: 2 } } });
    const workers = [await world.worker("s", ["slow"], { capacity: 3 }), await world.worker("f", ["fast"], { capacity: 3 })];
    const run = await world.submit({ nodes: [...roots("slow", 4), ...roots("fast", 5)] });
    const most = await drain(world, workers, 9);
    expect([most.get("slow"), most.get("fast")]).toEqual([1, 2]);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("[T48] nodes are shared among the workers of a type, and no worker gets more than its capacity", async () => {
    const world = await openFlowkit();
    const workers = [await world.worker("a", ["slow"]), await world.worker("b", ["slow"])];
    const run = await world.submit({ nodes: roots("slow", 6) });
    expect((await drain(world, workers, 6)).get("all")).toBe(2);
    expect((await world.ended(run)).state).toBe("succeeded");
    for (const worker of workers) expect(worker.commands.length).toBeGreaterThan(0);
  });

  it("[T49] max_global_running holds over tasks", async () => {
    const world = await openFlowkit({ config: { max_global_running: 2 } });
    const workers = [await world.worker("a", ["slow"], { capacity: 4 })];
    const runs = [await world.submit({ nodes: roots("slow", 4) }), await world.submit({ nodes: roots("slow", 5) })];
    expect((await drain(world, workers, 9)).get("all")).toBe(2);
    for (const run of runs) expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("a worker gets as many nodes at the same time as it announced, and none after it has left", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("a", ["slow"], { capacity: 3 });
    const run = await world.submit({ nodes: roots("slow", 5) });
    await world.until(async () => worker.commands.length === 3);
    await worker.goOffline();
    await world.until(async () => world.engine.workers.get("a")?.status === "offline");
    for (const command of worker.commands.slice(0, 3)) await worker.done(command);
    await world.until(async () => (await world.engine.reader.heads(run.id)).filter(({ state }) => state === "done").length === 3);
    // A late record of the worker does not bring it back.
    expect(worker.commands.length).toBe(3);
    expect(world.engine.workers.get("a")?.status).toBe("offline");
  });

  it("a worker is online when it has returned, also when its earlier sign-off is read later", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("a", ["slow"]);
    // Announcements have no key, so those of one worker are in several partitions, which are read in any order.
    await worker.goOffline({ agoMs: 1 });
    const run = await world.submit({ nodes: roots("slow", 1) });
    await worker.done(await worker.accept());
    await world.ended(run);
    // A record with a time far in the past comes from a wrong clock, and is not old.
    await worker.goOffline({ agoMs: 3_600_000 });
    await world.until(async () => world.engine.workers.get("a")?.status === "offline");
  });

  it("a type whose commands no worker accepts does not delay other types of the same workers", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("a", ["slow", "fast"]);
    const run = await world.submit({ nodes: [...roots("slow", 2), ...roots("fast", 2)] });
    const fast = await world.until(async () => worker.commands.find(({ step_type }) => step_type === "fast"));
    await worker.accepts(fast);
    await worker.done(fast);
    await world.inState(run, fast.node_id, "done");
    await world.until(async () => worker.commands.some(({ step_type, node_id }) => step_type === "fast" && node_id !== fast.node_id));
  });

  it("a reader is not sent before its source runs again, because otherwise readers could use the whole capacity", async () => {
    const world = await openFlowkit();
    const maker = await world.worker("m", ["make"]);
    const taker = await world.worker("t", ["take"]);
    const read = { depends_on: ["u"], io: { start_when: "first_batch", input_inline: pullFrom("u") } };
    const run = await world.submit({ nodes: [node("u", "make"), node("d", "take", read)] });
    const source = await maker.accept();
    await maker.batch(source, "b0", { count: 1 });
    const reader = await taker.accept();
    await world.inState(run, "d", "held");
    // The source's worker is lost: the source waits for another worker.
    await maker.goOffline();
    await world.until(async () => world.engine.workers.get("m")?.status === "offline");
    await maker.failed(source, "worker_restarted", false);
    await world.inState(run, "u", "queued");
    await taker.failed(reader, "worker_restarted", false);
    await world.until(async () => ((await world.task(run, "d"))?.dueAt ?? 0) > world.clock.now());
    expect(taker.commands).toHaveLength(1);
    await maker.announce();
    await maker.accept();
    await world.inState(run, "u", "held");
    await world.clock.advance(1_000);
    expect((await taker.accept()).node_id).toBe("d");
  });

  it("a worker that announces no capacity gets nothing", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("a", ["slow"], { capacity: 0 });
    await world.until(async () => world.engine.workers.get("a") !== undefined);
    const run = await world.submit({ nodes: roots("slow", 1) });
    await world.inState(run, "slow-0", "queued");
    await worker.announce({ capacity: { tasks: 1 } });
    await worker.accept();
    expect(world.coordinator.counts.started).toBe(1);
  });

  // The reference's announcements every minute have no capabilities, and its coordinator then forgets these.
  it("[A18] a worker whose later announcements lack its capabilities keeps them", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("a", ["slow", "fast"]);
    const later: JsonObject[] = [{ capabilities: null }, { capabilities: null, type: "" }];
    for (const told of later) {
      await worker.announce(told);
      const run = await world.submit({ nodes: roots("fast", 1) });
      await worker.done(await worker.accept());
      await world.ended(run);
      expect(world.coordinator.roster()).toMatchObject([{ worker_id: "a", roles: ["slow", "fast"] }]);
    }
  });

  it("a name that only reports on tasks does not count as a worker, except for tasks that it holds", async () => {
    const world = await openFlowkit();
    const worker = await world.worker("a", ["slow"], { capacity: 2 });
    const stranger = await world.worker("b", ["nothing"], { mute: true });
    const run = await world.submit({ nodes: roots("slow", 4) });
    const [first, second] = [await worker.accept(), await worker.next()];
    await stranger.beat(first);
    await stranger.signal(first);
    expect(world.engine.workers.get("a")).toMatchObject({ protocol: "flowkit", does: ["slow"] });
    expect(world.engine.workers.get("b")).toBe(undefined);
    expect(world.coordinator.roster().map(({ worker_id }) => worker_id)).toEqual(["a"]);
    // It accepted the command anyway, and can be told to stop.
    await stranger.accepts(second);
    await world.until(async () => world.engine.workers.get("b")?.status === "busy");
    const third = await worker.next();
    await stranger.done(second);
    await world.until(async () => world.engine.workers.get("b")?.status === "offline");
    await worker.accepts(third);
    await world.inState(run, third.node_id, "held");
    expect(world.coordinator.counts.started).toBe(3);
    expect(world.coordinator.roster()).toHaveLength(1);
  });

  it("why a node waits is reported: no worker of its type has connected", async () => {
    const world = await openFlowkit();
    await world.worker("a", ["fast"]);
    await world.until(async () => world.engine.workers.get("a") !== undefined);
    const run = await world.submit({ nodes: roots("slow", 1) });
    const task = await world.inState(run, "slow-0", "queued");
    expect(await world.engine.waiting()(task)).toMatchObject({ reason: "no-worker", text: "no live worker asks for slow" });
  });
});
