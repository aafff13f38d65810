// Livelock with workers of the reference. An idle worker is killed with -9, a node becomes ready, and a new worker starts when the command
// for the node has expired several times. This worker runs each command that it reads, also expired ones, and does not stop for a later
// command. Each expiry once freed the batches that the running attempt had claimed: 348 batches were processed instead of 30, and the run
// did not end. The test plays such a worker, without its data in MongoDB. test/faults/flowkit-absences.ts tests random absences.

import { describe, expect, it } from "vitest";
import type { Bus } from "../../src/core/bus/bus.ts";
import { node } from "../support/flowkit-graphs.ts";
import { openFlowkit } from "../support/flowkit-world.ts";

const OFFER_MS = 10_000;
const LEASE_MS = 60_000;

/** A coordinator with workers of the reference. `members` is absent when the bus cannot report members. */
async function setup(members?: () => number) {
  let released = 0;
  const results = {
    completed: async () => null,
    adopt: async () => {},
    release: async () => {
      released++;
    },
  };
  const bus = (own: Bus): Bus => ({
    name: own.name,
    publish: (records) => own.publish(records),
    subscribe: (subscription) => own.subscribe(subscription),
    ensure: (topics) => own.ensure(topics),
    ...(members === undefined ? {} : { members: async () => members() }),
    close: () => own.close(),
  });
  const world = await openFlowkit({ results, bus });
  const commands = await world.spy(["cmd.indexer.v1"]);
  /** Lets the newest offer expire, and waits until the task is offered again. */
  const lapse = async (run: Awaited<ReturnType<typeof world.submit>>) => {
    const { grant } = await world.inState(run, "a", "offered");
    await world.clock.advance(OFFER_MS);
    return world.until(async () => {
      const task = await world.task(run, "a");
      return task?.state === "offered" && task.grant > grant ? task : undefined;
    });
  };
  /** An idle worker announces itself and dies: no worker reads its commands, but the coordinator still counts its free slot. */
  const gone = async () => {
    const worker = await world.worker("gone", ["indexer"]);
    await world.until(async () => world.coordinator.roster().length > 0);
    await worker.stop();
  };
  return { world, commands, lapse, gone, released: () => released };
}

describe("a worker that reads an expired command", () => {
  it("continues with it while no worker has accepted a later offer, and keeps it as long as it reports", async () => {
    const { world, commands, lapse, gone, released } = await setup();
    await gone();
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await lapse(run);
    const offered = await lapse(run);
    const worker = await world.worker("late", ["indexer"]);
    const first = await worker.accept();
    expect(first.attempt_epoch).toBeLessThan(offered.grant);
    expect(await world.inState(run, "a", "held")).toMatchObject({ holder: "late", grant: offered.grant });
    const sent = commands.length;
    const given = released();
    for (let beat = 0; beat < 5; beat++) {
      await worker.beat(first);
      await worker.batch(first, `b${beat}`, { count: 1 });
      await world.until(async () => (await world.partsOf(run, "a")).length === beat + 1);
      await world.clock.advance(LEASE_MS / 2);
    }
    // No command was sent again, and none of its claimed batches was given to another worker.
    expect([commands.length, released()]).toEqual([sent, given]);
    await worker.done(first);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("may send all its reports together after the coordinator was down", async () => {
    const { world, lapse, gone } = await setup();
    await gone();
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await lapse(run);
    const worker = await world.worker("late", ["indexer"]);
    const first = await worker.next();
    await world.restartCoordinator(async () => {
      await worker.accepts(first);
      await worker.batch(first, "b0", { count: 1 });
      await worker.done(first, { total: 1 });
    });
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.partsOf(run, "a")).toEqual([{ count: 1 }]);
  });

  it("keeps its place over a restart of the coordinator", async () => {
    const { world, lapse, gone } = await setup();
    await gone();
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await lapse(run);
    const worker = await world.worker("late", ["indexer"]);
    const first = await worker.accept();
    await world.inState(run, "a", "held");
    await world.restartCoordinator();
    await worker.batch(first, "b0", { count: 1 });
    await worker.done(first);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.partsOf(run, "a")).toHaveLength(1);
  });

  it("is refused when another worker has accepted a later offer", async () => {
    const { world, lapse, gone } = await setup();
    await gone();
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await lapse(run);
    const worker = await world.worker("both", ["indexer"], { capacity: 2 });
    const [early, later] = [await worker.next(), await worker.next()];
    const other = await world.worker("other", ["indexer"]);
    await other.accepts(later);
    await world.inState(run, "a", "held");
    await worker.accepts(early);
    await worker.batch(early, "b0", { count: 1 });
    await other.done(later);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(await world.partsOf(run, "a")).toEqual([]);
  });

  it("that has failed the node does not get it back by a duplicate event", async () => {
    const { world } = await setup();
    const worker = await world.worker("w", ["indexer"]);
    const run = await world.submit({ nodes: [node("a", "indexer", { retry_policy: { max: 3, backoff_sec: 0 } })] });
    const first = await worker.accept();
    await worker.failed(first, "flaky", false);
    const second = await worker.next();
    await worker.beat(first);
    await worker.accepts(second);
    expect(await world.inState(run, "a", "held")).toMatchObject({ grant: second.attempt_epoch });
    await worker.done(second);
    expect((await world.ended(run)).state).toBe("succeeded");
  });
});

describe("an expired command", () => {
  it("is not sent again while no worker of its role is running: the next worker runs it once", async () => {
    let members = 0;
    const { world, commands, lapse, gone } = await setup(() => members);
    await gone();
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    for (let time = 0; time < 5; time++) await lapse(run);
    expect(commands).toHaveLength(1);
    members = 1;
    const worker = await world.worker("late", ["indexer"]);
    const only = await worker.accept();
    await worker.done(only);
    expect((await world.ended(run)).state).toBe("succeeded");
    expect(worker.commands).toHaveLength(1);
  });

  it("is sent again as soon as there is a worker that has not read it", async () => {
    let members = 0;
    const { world, commands, lapse, gone } = await setup(() => members);
    await gone();
    const run = await world.submit({ nodes: [node("a", "indexer")] });
    await lapse(run);
    expect(commands).toHaveLength(1);
    members = 1;
    await lapse(run);
    await world.until(async () => commands.length === 2);
  });
});
