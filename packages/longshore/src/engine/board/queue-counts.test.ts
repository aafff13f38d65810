// The counts that the list of queues shows are kept in memory, apart from the rows. After any orders they must be those of the rows.

import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type OpenEngine, openEngineWithStore } from "../../../test/support/engine.ts";
import { TestClock } from "../../testing/clock.ts";
import { laneKey, laneOf } from "./lanes.ts";
import type { LimitKey } from "./limits.ts";
import { delayedTasks, stateOf } from "./queue-state.ts";
import type { NewTaskRow } from "./store.ts";
import { type Hold, isOpen, type TaskRow } from "./task.ts";

const termMs = 1_000;
const policy = JSON.stringify({ failures: 2, lost: 2, backoff: { kind: "fixed", delayMs: 400 } });
const why = { reason: null, by: null };

const clock = new TestClock();
let engine: OpenEngine;
beforeAll(async () => {
  engine = await openEngineWithStore({ directory: null, clock });
});
afterAll(() => engine.close());

let made = 0;

/** A lane and a limit of its own, in the engine that all tests share. */
function setup() {
  const { board, lanes, workers } = engine;
  const name = `lane-${++made}`;
  const key = `key-${made}`;
  const lane = laneOf(name);
  const reach = { names: [name], labels: [] };
  const ids: string[] = [];
  const holds: Hold[] = [];
  const keep = (tasks: readonly TaskRow[]) => {
    for (const { id, grant, holder } of tasks) holds.push({ taskId: id, grant, holder: holder ?? undefined });
    return tasks;
  };
  const gone = new AbortController();
  return {
    ...{ board, lane, key, ids, holds, leave: () => gone.abort() },
    async post(parts: Partial<NewTaskRow> = {}) {
      ids.push(`${name}-${ids.length}`);
      await board.post([{ id: ids.at(-1) as string, step: "s", lanes: [lane], input: "null", policy, ...parts }]);
    },
    claim: async () => keep(await board.claim({ reach, holder: "ann", termMs })),
    wait: () => board.claim({ reach, holder: "ann", termMs, waitMs: 700, signal: gone.signal }).then(keep, () => []),
    change: (limits: Omit<LimitKey, "key">) => board.limits.change(key, { ...limits, ...why }),
    async counts() {
      const queue = [...lanes.all()].find((each) => each.lane.name === name);
      const ready = queue === undefined ? 0 : (await stateOf(engine, queue)).ready;
      const limited = board.limits.view(key)?.waiting.get(laneKey(lane)) ?? 0;
      const delayed = (await delayedTasks({ reader: engine.reader, clock })).get(laneKey(lane)) ?? 0;
      return { waiting: ready + limited, delayed, held: workers.heldOf(lane), limited };
    },
    async rows() {
      const tasks = (await Promise.all(ids.map((id) => board.task(id)))) as TaskRow[];
      const queued = tasks.filter(({ state }) => state === "queued");
      const due = queued.filter(({ dueAt }) => dueAt <= clock.now());
      return {
        ...{ waiting: due.length, delayed: queued.length - due.length },
        held: tasks.filter(({ state }) => isOpen(state) && state !== "queued").length,
      };
    },
  };
}

type World = ReturnType<typeof setup>;
type Order = (world: World) => Promise<unknown>;

const some = fc.nat(2);
const limit = fc.oneof(
  some.map((held) => ({ held })),
  fc.constant({ rate: { count: 1, windowMs: 600 } }),
  fc.constant({ held: 2, rate: { count: 2, windowMs: 1_500 } }),
);
const onHold = (act: (world: World, hold: Hold) => Promise<unknown>) =>
  fc.nat(5).map((at) => (world: World) => {
    const hold = world.holds[at % Math.max(1, world.holds.length)];
    return hold === undefined ? Promise.resolve() : act(world, hold);
  });
const posts = fc.record({ limit: fc.option(limit), delayMs: fc.constantFrom(0, 0, 500), claimMs: fc.constantFrom(undefined, 2_000) }).map(
  ({ limit: own, ...parts }) =>
    (world: World) =>
      world.post({ ...parts, limits: own === null ? [] : [{ key: world.key, ...own }] }),
);
const steps = fc.constantFrom(100, 300, 600, 1_000, 2_500).map((ms) => () => clock.advance(ms));
const orders: fc.Arbitrary<Order> = fc.oneof(
  { weight: 4, arbitrary: posts },
  { weight: 4, arbitrary: fc.constant((world: World) => world.claim()) },
  { weight: 4, arbitrary: steps },
  fc.constant(async (world: World) => void world.wait()),
  onHold(({ board }, hold) => board.fail(hold, { error: "no", retryable: true })),
  onHold(({ board }, hold) => board.complete(hold, "1")),
  onHold(({ board }, hold) => board.defer(hold, 300)),
  onHold(({ board }, hold) => board.giveBack(hold)),
  fc.nat(5).map(
    (at) =>
      async ({ board, ids }: World) =>
        ids[at] !== undefined && board.cancel(ids[at]),
  ),
  limit.map((change) => (world: World) => world.change(change)),
  fc.constant(({ board, key }: World) => board.limits.takeBack(key)),
  fc.constant(({ board, lane }: World) => board.halts.pause(lane, why)),
  { weight: 2, arbitrary: fc.constant(({ board, lane }: World) => board.halts.resume(lane)) },
);

describe("the counts of a lane", () => {
  it("include a task once that a limit held back, when its time comes after it has got room", async () => {
    const { post, claim, key, counts } = setup();
    const limits = [{ key, rate: { count: 2, windowMs: termMs } }];
    for (let n = 0; n < 3; n++) await post({ limits });
    for (let n = 0; n < 3; n++) await claim();
    expect(await counts()).toMatchObject({ waiting: 1, limited: 1, held: 2 });
    // The holds end with the window: the third task gets the room that they leave, and then its own time comes.
    await clock.advance(termMs);
    await clock.advance(400);
    expect(await counts()).toEqual({ waiting: 3, limited: 0, held: 0, delayed: 0 });
  });

  it("leave out a task that was cancelled while a limit held it back", async () => {
    const { board, post, claim, key, counts, ids } = setup();
    for (let n = 0; n < 3; n++) await post({ limits: [{ key, held: 1 }] });
    for (let n = 0; n < 2; n++) await claim();
    expect(await counts()).toMatchObject({ waiting: 2, limited: 2 });
    await board.cancel(ids[1] as string);
    expect(await counts()).toMatchObject({ waiting: 1, limited: 1 });
  });

  it("include a task once whose time comes again after another hold", async () => {
    const { board, post, claim, counts } = setup();
    await post({ claimMs: 10_000 });
    const [held] = await claim();
    await board.giveBack({ taskId: held?.id as string, grant: held?.grant as number, holder: "ann" });
    // The end of the hold that was given back.
    await clock.advance(termMs);
    expect(await counts()).toMatchObject({ waiting: 1 });
  });

  it("are those of the rows after any orders", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(orders, { minLength: 10, maxLength: 40, size: "max" }), async (given) => {
        const world = setup();
        for (const order of given) {
          await order(world);
          // Timers may have started operations that are not done yet.
          await clock.advance(0);
          await clock.advance(0);
          expect(await world.counts()).toMatchObject(await world.rows());
        }
        // Tasks that are left would fill the lists that the next worlds read.
        const { board, lane, key, ids } = world;
        world.leave();
        for (const id of ids) await board.cancel(id);
        await board.halts.resume(lane);
        await board.limits.takeBack(key);
      }),
      { numRuns: 100 },
    );
  });
});
