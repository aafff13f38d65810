// A run that is restarted begins another life. Pending messages between it and its parent are about the earlier life and must change nothing.
// The tests restart at every point between the end of a run and the last message about it.

import { describe, expect, it } from "vitest";
import { isRunOpen } from "../../src/engine/run/run.ts";
import type { NewChild } from "../../src/engine/run/store.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, termMs, turns, type World } from "./world.ts";

const lanes = ["left", "right", "after"];

/** A parent with two children, whose tasks are held. Messages stay where they are until they are delivered one by one. */
interface Family {
  readonly world: World;
  readonly parent: string;
  readonly left: string;
  readonly right: string;
  fail(side: "left" | "right"): Promise<void>;
}

async function startFamily(setup: Setup): Promise<Family> {
  const world = await setup({ carries: false });
  const tied = { dialect: "tied" };
  await world.define("inner-left", [step("left")], tied);
  await world.define("inner-right", [step("right")], tied);
  const steps = [
    step("to-left", { workflow: "inner-left" }),
    step("to-right", { workflow: "inner-right" }),
    step("after", { after: ["to-left", "to-right"] }),
  ];
  const { id: parent } = await world.start("outer", steps, tied);
  while (await deliverOne(world));
  const held = { left: await world.claim("left"), right: await world.claim("right") };
  return {
    ...{ world, parent, left: held.left?.runId as string, right: held.right?.runId as string },
    async fail(side) {
      expect(await world.board.fail(holdOf(held[side]), { error: "boom", retryable: false })).toBe("ok");
    },
  };
}

/** Processes the oldest message. Returns false when there is none. */
async function deliverOne(world: World): Promise<boolean> {
  const [stored] = await world.store.runs.messages();
  if (stored === undefined) return false;
  const { message } = stored;
  let child: NewChild | null = null;
  if (message.kind === "start-run") {
    const workflow = message.workflow as string;
    const definition = await world.runs.definition(workflow);
    child = { id: `child-of-message-${stored.id}`, definitionId: definition?.id as string, workflow, input: message.input };
  }
  await world.store.runs.deliver(stored, child);
  return true;
}

/** Ways in which a family ends. */
const ends: { [name: string]: (family: Family) => Promise<unknown> } = {
  "one child fails": ({ fail }) => fail("left"),
  "both children fail": async ({ fail }) => {
    await fail("left");
    await fail("right");
  },
  "one child is cancelled": ({ world, left }) => world.runs.cancel(left),
  "the parent is cancelled": ({ world, parent }) => world.runs.cancel(parent),
  "the parent is cancelled and one child fails": async ({ world, parent, fail }) => {
    await world.runs.cancel(parent);
    await fail("left");
  },
};

/** Ways to restart one of its runs, by the named run. Undefined when the command is not possible now. */
const orders: { [name: string]: (family: Family) => Promise<string | undefined> } = {
  "retry of the child": ({ world, left }) => restarted(world, left, { kind: "retry" }),
  "rerun of the child": ({ world, left }) => restarted(world, left, { kind: "rerun", node: 0 }),
  "restart of the child": ({ world, left }) => restarted(world, left, { kind: "restart" }),
  "retry of the parent": ({ world, parent }) => restarted(world, parent, { kind: "retry" }),
  "rerun of the parent": ({ world, parent }) => restarted(world, parent, { kind: "rerun", node: 0 }),
  "restart of the parent": ({ world, parent }) => restarted(world, parent, { kind: "restart" }),
  // As in Conductor's API: the lowest run is retried when the top run has ended.
  "retry of the parent that resumes its child": async ({ world, parent, left }) => {
    if (isRunOpen((await world.run(parent)).state)) return undefined;
    return restarted(world, isRunOpen((await world.run(left)).state) ? parent : left, { kind: "retry" });
  },
};

async function restarted(world: World, runId: string, order: Parameters<World["runs"]["tell"]>[1]): Promise<string | undefined> {
  const before = await world.run(runId);
  const after = await world.runs.tell(runId, order);
  return after !== undefined && after.retries > before.retries ? runId : undefined;
}

/** The parent waits for the other child, which has failed but has not notified it yet. That child is also retried. */
async function restartOther({ world, parent, right }: Family): Promise<void> {
  const waiting = await world.task(`${parent}.1`);
  if (waiting.state === "queued" && waiting.attempt === 0) await world.runs.tell(right, { kind: "retry" });
}

/** Delivers every message and completes every task, until there is neither. Tasks that are still held are lost and queued again. */
async function workOff(world: World): Promise<void> {
  for (let rounds = 0; rounds < 2; rounds++) {
    for (let more = true; more; ) {
      while (await deliverOne(world));
      const task = await world.claim(lanes, { holder: "bob" });
      more = task !== undefined;
      if (more) await world.board.complete(holdOf(task), "1");
    }
    await world.clock.advance(termMs);
  }
}

export function livesContract(setup: Setup): void {
  describe("a run that is restarted", () => {
    for (const [end, happen] of Object.entries(ends)) {
      it(`after ${end} succeeds together with its parent, for any delivered messages`, async () => {
        const tried: { [order: string]: number } = {};
        for (const [name, order] of Object.entries(orders)) {
          for (let delivered = 0, more = true; more; delivered++) {
            const family = await startFamily(setup);
            await happen(family);
            for (let at = 0; at < delivered && more; at++) more = await deliverOne(family.world);
            const target = more ? await order(family) : undefined;
            if (target !== undefined) {
              const at = `${name} after ${delivered} messages`;
              expect([at, isRunOpen((await family.world.run(family.parent)).state)]).toEqual([at, true]);
              await restartOther(family);
              await workOff(family.world);
              expect([at, (await family.world.run(target)).state]).toEqual([at, "succeeded"]);
              expect([at, (await family.world.run(family.parent)).state]).toEqual([at, "succeeded"]);
              tried[name] = (tried[name] ?? 0) + 1;
            }
            await family.world.close();
          }
        }
        // Each order was possible at some point.
        expect(Object.keys(tried)).toEqual(Object.keys(orders));
      });
    }

    it("makes a paused parent wait again that has not processed its end", async () => {
      const { world, parent, left, fail } = await startFamily(setup);
      await world.runs.tell(parent, { kind: "pause" });
      await fail("left");
      while (await deliverOne(world));
      expect((await world.task(`${parent}.0`)).state).toBe("failed");
      await world.runs.tell(left, { kind: "retry" });
      expect((await world.task(`${parent}.0`)).state).toBe("queued");
      expect(await world.run(parent)).toMatchObject({ state: "paused", backlog: null });
      await world.runs.tell(parent, { kind: "resume" });
      await workOff(world);
      expect((await world.run(parent)).state).toBe("succeeded");
    });

    it("has no effect on a parent that has begun again meanwhile and has not reached the step", async () => {
      const world = await setup();
      const tied = { dialect: "tied" };
      await world.define("inner", [step("left")], tied);
      const { id } = await world.start("outer", [step("right"), step("child", { workflow: "inner", after: ["right"] })], tied);
      await world.board.complete(holdOf(await world.claim("right")), "1");
      await turns(10);
      const held = await world.claim("left");
      await world.board.fail(holdOf(held), { error: "boom", retryable: false });
      await turns(10);
      await world.runs.tell(id, { kind: "restart" });
      await world.board.fail(holdOf(await world.claim("right")), { error: "boom", retryable: false });
      await world.runs.tell(held?.runId as string, { kind: "retry" });
      await turns(10);
      expect(await world.run(id)).toMatchObject({ state: "failed" });
      expect((await world.task(`${id}.1`)).state).toBe("forgotten");
    });

    it("starts nothing more when its first step ends it at once", async () => {
      const world = await setup();
      const missing = { $ref: { path: ["missing"] } };
      const { id } = await world.start("outer", [step("left", { input: missing }), step("right")], { dialect: "tied", input: {} });
      expect((await world.run(id)).state).toBe("failed");
      expect(await world.claim("right")).toBeUndefined();
      await world.runs.tell(id, { kind: "retry" });
      expect((await world.run(id)).state).toBe("failed");
      expect(await world.claim("right")).toBeUndefined();
    });

    it("gives back the permit of an offer once, when the failure of that step ends it", async () => {
      const world = await setup();
      const limits = [{ key: "api", held: 2 }];
      const { id } = await world.start("outer", [step("left", { limits })], { dialect: "tied" });
      await world.start("other", [step("right", { limits }), step("after", { limits })]);
      const [offered] = await world.board.offer({ reach: { names: ["left"], labels: [] }, termMs });
      await world.claim("right");
      await world.board.fail({ taskId: `${id}.0`, grant: offered?.grant }, { error: "boom", retryable: false });
      await world.runs.tell(id, { kind: "retry" });
      expect(await world.claim("left")).toBeDefined();
      expect(await world.claim("after")).toBeUndefined();
    });

    it("does not get the input of a start from an earlier attempt of its parent", async () => {
      const world = await setup({ carries: false });
      await world.define("inner", [step("left", { input: { $ref: { path: [] } } })], { dialect: "tied" });
      const child = step("child", { workflow: "inner", input: { $ref: { path: [] } } });
      const { id } = await world.start("outer", [child], { dialect: "tied", input: "first" });
      await world.runs.cancel(id);
      await world.runs.tell(id, { kind: "restart", input: '"second"' });
      expect(await world.store.runs.messages()).toHaveLength(2);
      while (await deliverOne(world));
      expect((await world.claim("left"))?.input).toBe('"second"');
      expect(await world.claim("left")).toBeUndefined();
    });

    it("processes messages of an earlier version of Longshore", async () => {
      const { world, parent, left, fail } = await startFamily(setup);
      await fail("left");
      const stored = await world.store.runs.messages();
      expect(stored).toMatchObject([{ message: { kind: "settle-task", from: left, life: 0 } }]);
      for (const { id, message } of stored)
        await world.store.runs.deliver({ id, message: { ...message, from: undefined, life: undefined } as typeof message }, null);
      expect((await world.run(parent)).state).toBe("failed");
    });
  });
}

export function livesRestartContract(setup: Setup): void {
  describe("a child that was cancelled with its parent, which waits for it again,", () => {
    for (const restarts of [false, true]) {
      const title = restarts ? "also after a restart before each message" : "without a restart";
      it(`does not end its parent with the end of its earlier life, ${title}`, async () => {
        const family = await startFamily(setup);
        const { parent, left, right } = family;
        let { world } = family;
        const restart = async () => {
          if (!restarts) return;
          await world.close();
          world = await setup({ place: world.place, clock: world.clock, carries: false });
        };
        await family.fail("left");
        // The end of the left child ends the parent, and that cancels the right one.
        expect(await waiting(world)).toEqual(["settle-task"]);
        await deliverOne(world);
        expect(await waiting(world)).toEqual(["cancel-child"]);
        await deliverOne(world);
        expect(await waiting(world)).toEqual(["settle-task"]);
        expect([await stateOf(world, parent), await stateOf(world, right)]).toEqual(["failed", "cancelled"]);
        await world.runs.tell(left, { kind: "retry" });
        // The end of the right child is still on its way, and its next life has not begun.
        expect(await waiting(world)).toEqual(["settle-task", "start-run"]);
        await restart();
        await deliverOne(world);
        expect(await world.task(`${parent}.1`)).toMatchObject({ state: "queued", attempt: 0 });
        expect([await stateOf(world, parent), await stateOf(world, right)]).toEqual(["running", "cancelled"]);
        await restart();
        while (await deliverOne(world));
        expect(await world.run(right)).toMatchObject({ state: "running", retries: 1 });
        await workOff(world);
        expect([await stateOf(world, parent), await stateOf(world, right)]).toEqual(["succeeded", "succeeded"]);
        expect(await world.run(parent)).toMatchObject({ retries: 1 });
      });
    }
  });
}

async function waiting(world: World): Promise<string[]> {
  return (await world.store.runs.messages()).map(({ message }) => message.kind);
}

async function stateOf(world: World, runId: string): Promise<string> {
  return (await world.run(runId)).state;
}
