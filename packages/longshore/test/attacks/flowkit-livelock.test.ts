// Livelock, with workers of the reference: an idle worker dies by kill -9, a node becomes ready, and a new worker comes when its command has
// lapsed several times. It runs each command that it reads, whatever has become of it since, and does not stop for a later one. Each lapse once
// freed what the attempt at work had claimed: 348 batches were worked for 30, and the run did not end. The part of such a worker is played; what
// it keeps in MongoDB is left out. Random absences of all sorts are in test/faults/flowkit-absences.ts.

import { describe, expect, it } from "vitest";
import type { Bus } from "../../src/bus/bus.ts";
import { node } from "../support/flowkit-graphs.ts";
import { openFlowkit } from "../support/flowkit-world.ts";

const OFFER_MS = 10_000;
const LEASE_MS = 60_000;

/** A coordinator beside workers of another make. `members` of the bus is absent where it cannot tell. */
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
  /** Lets the newest offer lapse, and waits until the task is offered again. */
  const lapse = async (run: Awaited<ReturnType<typeof world.submit>>) => {
    const { grant } = await world.inState(run, "a", "offered");
    await world.clock.advance(OFFER_MS);
    return world.until(async () => {
      const task = await world.task(run, "a");
      return task?.state === "offered" && task.grant > grant ? task : undefined;
    });
  };
  /** An idle worker announces itself and dies: nothing reads its commands, and its room is still counted on. */
  const gone = async () => {
    const worker = await world.worker("gone", ["indexer"]);
    await world.until(async () => world.coordinator.roster().length > 0);
    await worker.stop();
  };
  return { world, commands, lapse, gone, released: () => released };
}

describe("a worker that reads a command after it lapsed", () => {
  it("continues with it while no worker has taken a later offer, and keeps it as long as it reports", async () => {
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
    // Nothing was sent again, and nothing of what it has claimed was given to another.
    expect([commands.length, released()]).toEqual([sent, given]);
    await worker.done(first);
    expect((await world.ended(run)).state).toBe("succeeded");
  });

  it("may report everything at once after the coordinator was down", async () => {
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

  it("is held to its place over a restart of the coordinator", async () => {
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

  it("finds it taken when another worker has accepted a later offer", async () => {
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

  it("that has failed it does not get it back by a duplicate event", async () => {
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

describe("a command that lapsed", () => {
  it("is not followed by another while no worker of its role is there: the next worker runs it once", async () => {
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

  it("is followed by another as soon as a worker is there that has not read it", async () => {
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
