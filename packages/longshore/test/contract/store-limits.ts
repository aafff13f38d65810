// Start limits: runs with one value in a field of their input begin one after the other, in the order of their starts.

import { describe, expect, it } from "vitest";
import type { StartLimit } from "../../src/core/start-limit.ts";
import type { Run } from "../../src/engine/run/run.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, turns, type World, type WorldOptions } from "./world.ts";

const byCustomer: StartLimit = { key: "customer.id" };

async function limited(setup: Setup, limit: StartLimit = byCustomer, options?: WorldOptions): Promise<World> {
  const world = await setup(options);
  await world.define("order", [step("a")], { limit, timeoutMs: 60_000 });
  return world;
}

async function order(world: World, customer: unknown = 7, parts: { delayMs?: number; key?: string } = {}): Promise<Run> {
  return (await world.runs.start({ workflow: "order", input: JSON.stringify({ customer: { id: customer } }), ...parts })).run;
}

/** Completes the step of the run that has begun, and returns its id. */
async function finish(world: World): Promise<string | null> {
  const task = await world.claim("a");
  if (task === undefined) return null;
  await world.board.complete(holdOf(task), "1");
  return task.runId;
}

const ref = (...path: string[]) => ({ $ref: { path } });

const waits = { state: "running", active: 0, endBy: null };

export function limitContract(setup: Setup): void {
  describe("a workflow with a start limit", () => {
    it("has one run of a customer at a time, in the order of the starts, and others of other customers beside it", async () => {
      const world = await limited(setup);
      const first = await order(world);
      const second = await order(world);
      const third = await order(world);
      const other = await order(world, 8);
      expect(second).toMatchObject({ ...waits, turn: 1 });
      expect(third).toMatchObject({ ...waits, turn: 2 });
      expect([first, other]).toMatchObject([
        { turn: null, active: 1 },
        { turn: null, active: 1 },
      ]);
      expect(await finish(world)).toBe(first.id);
      // The same transaction that ended the first has begun the second: its timeout counts from now.
      expect(await world.run(second.id)).toMatchObject({ turn: null, active: 1, endBy: world.clock.now() + 60_000 });
      expect(await world.run(third.id)).toMatchObject(waits);
      expect(await finish(world)).toBe(other.id);
      expect([await finish(world), await finish(world), await finish(world)]).toEqual([second.id, third.id, null]);
      expect(await order(world)).toMatchObject({ turn: null, active: 1 });
    });

    it("counts values by their type, and runs without the field together", async () => {
      const world = await limited(setup);
      const begun = [await order(world, 7), await order(world, "7"), await order(world, null)];
      expect(begun.map(({ turn }) => turn)).toEqual([null, null, null]);
      const bare = await world.runs.start({ workflow: "order", input: "3" });
      expect(bare.run).toMatchObject({ turn: 1 });
      const long = "x".repeat(5_000);
      expect(await order(world, long)).toMatchObject({ turn: null });
      expect(await order(world, long)).toMatchObject({ turn: 1 });
      const refused = order(world, [1]);
      await expect(refused).rejects.toThrow("The field customer.id of the input is [1], expected a text, a number, true, false or null");
    });

    it("without a key counts all its runs, and begins as many as it allows", async () => {
      const world = await limited(setup, { runs: 2 });
      const runs = [await order(world, 1), await order(world, 2), await order(world, 3), await order(world, 4)];
      expect(runs.map(({ turn }) => turn)).toEqual([null, null, 1, 2]);
      await finish(world);
      expect(await world.run(runs[2]?.id as string)).toMatchObject({ turn: null, active: 1 });
      expect(await world.run(runs[3]?.id as string)).toMatchObject(waits);
    });

    it("begins the next run when one is cancelled, fails or times out", async () => {
      const world = await limited(setup);
      const [first, second, third, fourth] = [await order(world), await order(world), await order(world), await order(world)];
      await world.runs.cancel(first.id);
      expect(await world.run(second.id)).toMatchObject({ active: 1 });
      await world.board.fail(holdOf(await world.claim("a")), { error: "no", retryable: false });
      expect(await world.run(third.id)).toMatchObject({ active: 1 });
      await world.clock.advance(60_000);
      expect((await world.run(third.id)).state).toBe("timed-out");
      expect(await world.run(fourth.id)).toMatchObject({ active: 1, endBy: world.clock.now() + 60_000 });
    });

    it("leaves out a run that was cancelled while it waited", async () => {
      const world = await limited(setup);
      const [first, second, third] = [await order(world), await order(world), await order(world)];
      expect(await world.runs.cancel(second.id, "not needed")).toMatchObject({ state: "cancelled", error: "not needed", turn: null });
      expect(await finish(world)).toBe(first.id);
      expect(await world.run(third.id)).toMatchObject({ turn: null, active: 1 });
      expect(await finish(world)).toBe(third.id);
      expect(await finish(world)).toBeNull();
    });

    it("with skip starts nothing while a run is open, and returns that run", async () => {
      const world = await limited(setup, { ...byCustomer, overlap: "skip" });
      const first = await order(world);
      const again = { workflow: "order", input: '{"customer":{"id":7}}' };
      expect(await world.runs.start(again)).toMatchObject({ created: false, skipped: true, run: { id: first.id } });
      const late = await order(world, 7, { delayMs: 1_000 });
      await world.clock.advance(1_000);
      const error = `skipped because run ${first.id} is open: one run of order at a time for customer.id 7`;
      expect(await world.run(late.id)).toMatchObject({ state: "cancelled", error });
      await finish(world);
      expect(await world.runs.start(again)).toMatchObject({ created: true });
    });

    it("with cancel-previous cancels the oldest run, and begins at once", async () => {
      const world = await limited(setup, { ...byCustomer, runs: 2, overlap: "cancel-previous" });
      const [first, second, third] = [await order(world), await order(world), await order(world)];
      const error = `run ${third.id} follows: 2 runs of order at a time for customer.id 7`;
      expect(await world.run(first.id)).toMatchObject({ state: "cancelled", error });
      expect(await world.run(second.id)).toMatchObject({ state: "running", active: 1 });
      expect(third).toMatchObject({ state: "running", active: 1, turn: null });
    });

    it("lets a run with a delay take its place when the delay has passed", async () => {
      const world = await limited(setup);
      const late = await order(world, 7, { delayMs: 1_000 });
      const first = await order(world);
      expect(first).toMatchObject({ turn: null, active: 1 });
      await world.clock.advance(1_000);
      expect(await world.run(late.id)).toMatchObject({ ...waits, startAt: null, turn: 1 });
      await finish(world);
      expect(await world.run(late.id)).toMatchObject({ turn: null, active: 1 });
    });

    it("gives a paused run its turn, which begins it when it is resumed", async () => {
      const world = await limited(setup);
      const [first, second, third] = [await order(world), await order(world), await order(world)];
      await world.runs.tell(second.id, { kind: "pause" });
      expect(await finish(world)).toBe(first.id);
      expect(await world.run(second.id)).toMatchObject({ state: "paused", turn: null, active: 0 });
      expect(await world.run(third.id)).toMatchObject(waits);
      await world.runs.tell(second.id, { kind: "resume" });
      await world.clock.advance(0);
      expect(await finish(world)).toBe(second.id);
      expect(await finish(world)).toBe(third.id);
    });

    it("that is resumed while it waits keeps its place", async () => {
      const world = await limited(setup);
      const [first, second] = [await order(world), await order(world)];
      await world.runs.tell(second.id, { kind: "pause" });
      await world.runs.tell(second.id, { kind: "resume" });
      expect(await world.run(second.id)).toMatchObject({ ...waits, turn: 1 });
      expect([await finish(world), await finish(world)]).toEqual([first.id, second.id]);
    });

    it("returns a run that waits to a second start with its key", async () => {
      const world = await limited(setup);
      await order(world);
      const waiting = await order(world, 7, { key: "k" });
      expect(await order(world, 7, { key: "k" })).toMatchObject({ id: waiting.id, turn: 1 });
    });

    it("refuses to retry a run while another one is open, and counts a retried one", async () => {
      const world = await limited(setup);
      const first = await order(world);
      await world.runs.cancel(first.id);
      const second = await order(world);
      const refused = world.runs.retry(first.id);
      await expect(refused).rejects.toThrow(`Run ${second.id} is open (one run of order at a time for customer.id 7)`);
      await finish(world);
      expect(await world.runs.retry(first.id)).toMatchObject({ state: "running", active: 1 });
      const third = await order(world);
      expect(third).toMatchObject({ turn: 1 });
      expect([await finish(world), await finish(world)]).toEqual([first.id, third.id]);
    });

    it("counts a restarted run by its new input", async () => {
      const world = await limited(setup);
      const first = await order(world);
      await finish(world);
      const restart = await world.runs.restartOf(await world.run(first.id), { input: '{"customer":{"id":8}}' });
      await world.runs.tell(first.id, restart);
      expect(await order(world, 8)).toMatchObject({ turn: 1 });
      expect(await order(world, 7)).toMatchObject({ turn: null });
    });

    it("lets runs begin that end at once, however many wait", async () => {
      const world = await limited(setup, {});
      const first = await order(world);
      await world.define("order", [], { limit: {} });
      const started = [];
      for (let at = 0; at < 40; at++) started.push(order(world));
      const waiting = await Promise.all(started);
      expect(waiting.every(({ turn }) => turn !== null)).toBe(true);
      await finish(world);
      await turns(60);
      const states = await Promise.all(waiting.map(async ({ id }) => (await world.run(id)).state));
      expect(new Set(states)).toEqual(new Set(["succeeded"]));
      expect((await world.run(first.id)).state).toBe("succeeded");
    });

    it("uses the limit of its newest version for runs that wait", async () => {
      const world = await limited(setup);
      const runs = [await order(world), await order(world), await order(world), await order(world)];
      await world.define("order", [step("a")], { limit: { ...byCustomer, runs: 3 } });
      await finish(world);
      const turnsOf = async () => Promise.all(runs.map(async ({ id }) => (await world.run(id)).turn));
      expect(await turnsOf()).toEqual([null, null, null, null]);
      const last = [await order(world), await order(world)];
      expect(last.map(({ turn }) => turn === null)).toEqual([false, false]);
      // Without a limit all begin.
      await world.define("order", [step("a")], {});
      await finish(world);
      expect(await Promise.all(last.map(async ({ id }) => (await world.run(id)).active))).toEqual([1, 1]);
    });

    it("makes a step wait whose child run waits for its turn", async () => {
      const world = await limited(setup);
      const first = await order(world);
      const parent = await world.start("parent", [step("child", { workflow: "order", input: { customer: { id: 7 } } })]);
      await turns();
      expect(await world.run(parent.id)).toMatchObject({ state: "running", active: 1 });
      expect(await finish(world)).toBe(first.id);
      expect(await finish(world)).not.toBeNull();
      await turns();
      expect((await world.run(parent.id)).state).toBe("succeeded");
    });

    it("lets a child run begin beside the run that started it while there is room, and cancels no run that waits for it", async () => {
      const world = await setup();
      const walk = [step("next", { workflow: "walk", input: ref("next"), when: ref("goOn") })];
      await world.define("walk", [], { limit: { runs: 2 } });
      const input = { goOn: true, next: { goOn: false } };
      const run = await world.start("walk", walk, { limit: { runs: 2 }, input });
      await turns();
      expect((await world.run(run.id)).state).toBe("succeeded");
      await world.define("walk", [], { limit: { overlap: "cancel-previous" } });
      const alone = await world.start("walk", walk, { limit: { overlap: "cancel-previous" }, input });
      await turns();
      const error = `step next failed: it would cancel run ${alone.id}, which waits for it: one run of walk at a time`;
      expect(await world.run(alone.id)).toMatchObject({ state: "failed", error });
    });

    it("fails a step whose child run would wait for a run whose own child run waits for it", async () => {
      const world = await setup();
      const limit: StartLimit = { key: "account" };
      await world.define("move", [step("a")], { limit });
      const move = [step("a"), step("other", { workflow: "move", input: ref("next"), when: ref("isFirst"), after: ["a"] })];
      await world.define("move", move, { limit });
      const start = async (account: number, nextAccount: number) => {
        const input = JSON.stringify({ account, isFirst: true, next: { account: nextAccount, isFirst: false } });
        return (await world.runs.start({ workflow: "move", input })).run;
      };
      const [one, two, three] = [await start(1, 2), await start(2, 3), await start(3, 1)];
      for (const { id } of [one, two, three]) {
        expect(await finish(world)).toBe(id);
        await turns();
      }
      const rule = "one run of move at a time for account 1";
      expect(await world.run(three.id)).toMatchObject({
        state: "failed",
        error: `step other failed: it would wait for run ${one.id}, which waits for it: ${rule}`,
      });
      // The others continue, from the last to the first.
      while ((await finish(world)) !== null) await turns();
      expect([(await world.run(two.id)).state, (await world.run(one.id)).state]).toEqual(["succeeded", "succeeded"]);
    });

    it("makes a child run wait while one of the runs before it can end", async () => {
      const world = await setup();
      const limit: StartLimit = { runs: 2 };
      await world.define("move", [step("a")], { limit });
      await world.define("move", [step("again", { workflow: "move", input: { isFirst: false }, when: ref("isFirst") }), step("a")], {
        limit,
      });
      const other = await world.runs.start({ workflow: "move", input: '{"isFirst":false}' });
      const first = await world.runs.start({ workflow: "move", input: '{"isFirst":true}' });
      await turns();
      expect((await world.run(first.run.id)).state).toBe("running");
      expect(await finish(world)).toBe(other.run.id);
      while ((await finish(world)) !== null) await turns();
      expect((await world.run(first.run.id)).state).toBe("succeeded");
    });

    it("fails a step whose child run would wait for its own parent, or is skipped", async () => {
      const world = await setup();
      await world.define("order", [step("a")], { limit: {} });
      const again = await world.start("order", [step("again", { workflow: "order" })], { limit: {} });
      await turns();
      expect(await world.run(again.id)).toMatchObject({
        state: "failed",
        error: `step again failed: it would wait for run ${again.id}, which waits for it: one run of order at a time`,
      });
      await world.define("order", [step("a")], { limit: { overlap: "skip" } });
      const open = await order(world);
      const parent = await world.start("parent", [step("child", { workflow: "order" })]);
      await turns();
      expect((await world.run(parent.id)).error).toContain(`it was skipped because run ${open.id} is open: one run of order at a time`);
    });
  });
}

/** For stores whose data outlives the process. */
export function limitRestartContract(setup: Setup): void {
  describe("a workflow with a start limit, after a restart", () => {
    it("keeps the order of the runs that wait", async () => {
      const world = await limited(setup);
      const runs = [await order(world), await order(world), await order(world)];
      await world.close();
      const next = await setup({ place: world.place, clock: world.clock });
      const last = await order(next);
      const finished = [await finish(next), await finish(next), await finish(next), await finish(next)];
      expect(finished).toEqual([...runs, last].map(({ id }) => id));
    });
  });
}
