// A run with many open tasks ends. Its tasks are cancelled in slices, each in its own transaction. From the first slice on, no task of the
// run is handed out and no report on it is accepted, also while rows are not written yet. Another life begins when all slices are done.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, step, turns, type World } from "./world.ts";

const count = 7;
const sliceTasks = 2;
const names = Array.from({ length: count }, (_, at) => `s${at}`);
const steps = names.map((name) => step(name, { task: "work" }));

/** A run that was cancelled while two of its tasks were held, one was offered and the others were queued; messages stay where they are. */
async function cancelled(setup: Setup) {
  const world = await setup({ carries: false, sliceTasks });
  const { id } = await world.start("wide", steps);
  const held = [await world.claim(), await world.claim()];
  const [offered] = await world.board.offer({ reach: { names: ["work"], labels: [] }, termMs: 1_000 });
  const run = await world.runs.cancel(id, "no longer needed");
  return { world, id, held, offered, run };
}

async function deliverOne(world: World): Promise<boolean> {
  const [stored] = await world.store.runs.messages();
  if (stored !== undefined) await world.store.runs.deliver(stored, null);
  return stored !== undefined;
}

const statesOf = (world: World, id: string) => Promise.all(names.map(async (_, at) => (await world.task(`${id}.${at}`)).state));
const statesAfter = ["cancelling", "cancelling", ...Array<string>(count - 2).fill("cancelled")];

export function endingsContract(setup: Setup): void {
  describe("a large run that ends", () => {
    it("has ended with all of its tasks for every reader after the first transaction, and after each that follows", async () => {
      const { world, id, run } = await cancelled(setup);
      expect(run).toMatchObject({ state: "cancelled", error: "no longer needed" });
      let slices = 0;
      do {
        expect(await statesOf(world, id)).toEqual(statesAfter);
        slices++;
      } while (await deliverOne(world));
      expect(slices).toBeGreaterThan(count / sliceTasks);
      expect((await world.task(`${id}.6`)).endedAt).toBe((await world.run(id)).endedAt);
    });

    it("decides in slices what happened while it was paused, also when it is paused again in between", async () => {
      const world = await setup({ carries: false, sliceTasks });
      const last = step("last", { task: "late", after: names });
      const { id } = await world.start("wide", [...steps, last]);
      await world.runs.tell(id, { kind: "pause" });
      for (let claimed = await world.claim(); claimed !== undefined; claimed = await world.claim())
        await world.board.complete(holdOf(claimed), "1");
      await world.runs.tell(id, { kind: "resume" });
      let slices = 1;
      await deliverOne(world);
      await world.runs.tell(id, { kind: "pause" });
      while (await deliverOne(world));
      expect(await world.claim("late")).toBeUndefined();
      await world.runs.tell(id, { kind: "resume" });
      while (await deliverOne(world)) slices++;
      expect(slices).toBeGreaterThan(1);
      await world.board.complete(holdOf(await world.claim("late")), "2");
      expect(await world.run(id)).toMatchObject({ state: "succeeded", active: 0, backlog: null });
    });

    it("processes the first part of a step before its end, also when the part arrives while slices of the pause are left", async () => {
      const world = await setup({ carries: false, sliceTasks });
      const reader = step("reader", { task: "read", after: ["source"], startWhen: "first-part" });
      const { id } = await world.start("wide", [...steps.slice(0, 3 * sliceTasks), step("source", { task: "stream" }), reader]);
      const source = holdOf(await world.claim("stream"));
      await world.runs.tell(id, { kind: "pause" });
      for (let claimed = await world.claim(); claimed !== undefined; claimed = await world.claim())
        await world.board.complete(holdOf(claimed), "1");
      await world.parts.put(source, [{ uid: "a", value: "1" }]);
      await world.runs.tell(id, { kind: "resume" });
      for (let slice = 1; slice < 3; slice++) await deliverOne(world);
      await world.board.complete(source, "1");
      expect(await world.run(id)).toMatchObject({ state: "running" });
      while (await deliverOne(world));
      await world.board.complete(holdOf(await world.claim("read")), "2");
      expect(await world.run(id)).toMatchObject({ state: "succeeded", active: 0, left: 0, backlog: null });
    });

    it("hands out none of its tasks, but tasks of other runs after them", async () => {
      const { world } = await cancelled(setup);
      await world.post("other");
      expect((await world.claim())?.id).toBe("other");
      expect(await world.claim()).toBeUndefined();
      while (await deliverOne(world)) expect(await world.claim()).toBeUndefined();
    });

    it("gives none of its tasks to a waiting claim when the delay of one ends", async () => {
      const world = await setup({ carries: false, sliceTasks });
      const retry = { failures: 1, backoff: { kind: "fixed", delayMs: 500 } } as const;
      const { id } = await world.start(
        "wide",
        names.map((name) => step(name, { task: "work", retry })),
      );
      const held = [];
      for (const _ of names) held.push(await world.claim());
      expect(await world.board.fail(holdOf(held.at(-1)), { error: "later", retryable: true })).toBe("ok");
      await world.runs.cancel(id);
      const waiting = world.board.claim({ reach: { names: ["work"], labels: [] }, holder: "ann", termMs: 1_000, waitMs: 2_000 });
      await world.clock.advance(2_500);
      expect(await waiting).toEqual([]);
    });

    it("refuses late reports as if all slices were done", async () => {
      const { world, id, held, offered } = await cancelled(setup);
      const [first, second] = held;
      expect((await world.board.extend(holdOf(first))).verdict).toBe("cancel");
      expect(await world.board.complete(holdOf(second), "1")).toBe("cancel");
      expect(await world.board.complete(holdOf(second), "1")).toBe("again");
      expect((await world.board.extend(holdOf(offered))).verdict).toBe("stale");
      expect(await world.board.complete({ taskId: `${id}.6` }, "1")).toBe("stale");
      expect(await world.board.cancel(`${id}.6`)).toBe(false);
      while (await deliverOne(world));
      expect(await statesOf(world, id)).toEqual(["cancelling", ...Array<string>(count - 1).fill("cancelled")]);
      expect((await world.task(`${id}.1`)).output).toBe("1");
    });

    it("starts no child run, and stops running ones", async () => {
      const world = await setup({ carries: false, sliceTasks: 1 });
      await world.define("inner", [step("work")]);
      const { id } = await world.start(
        "outer",
        names.map((name) => step(name, { workflow: "inner" })),
      );
      const definition = await world.runs.definition("inner");
      const [first] = await world.store.runs.messages();
      const child = { id: "child", definitionId: definition?.id as string, workflow: "inner", input: "null" };
      await world.store.runs.deliver(first as never, child);
      await world.runs.cancel(id);
      for (let carried = 0; carried < 10 * count; carried++) {
        const [stored] = await world.store.runs.messages();
        if (stored === undefined) break;
        await world.store.runs.deliver(stored, stored.message.kind === "start-run" ? { ...child, id: `child-${stored.id}` } : null);
      }
      expect(await world.store.runs.messages()).toEqual([]);
      expect((await world.run("child")).state).toBe("cancelled");
      expect(await world.claim()).toBeUndefined();
    });

    it("begins its next life when the last task of this one has ended, and then all of its steps start", async () => {
      const { world, id } = await cancelled(setup);
      const retried = world.runs.retry(id);
      await turns();
      expect((await world.run(id)).state).toBe("cancelled");
      while (await deliverOne(world));
      expect(await retried).toMatchObject({ state: "running", retries: 1 });
      expect(await statesOf(world, id)).toEqual(names.map(() => "queued"));
      for (const _ of names) expect(await world.board.complete(holdOf(await world.claim()), "1")).toBe("ok");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it.each([false, true])("begins again without its earlier records, after a restart of the server: %s", async (restarts) => {
      let world = await setup({ carries: false, sliceTasks });
      const chain = names.map((name, at) => step(name, { task: "work", after: names.slice(Math.max(0, at - 1), at) }));
      const { id } = await world.start("long", chain);
      const first = await world.claim();
      expect(await world.board.complete(holdOf(first), '"old"')).toBe("ok");
      for (const _ of names.slice(1)) expect(await world.board.complete(holdOf(await world.claim()), '"old"')).toBe("ok");
      expect((await world.run(id)).state).toBe("succeeded");
      expect((await world.runs.tell(id, { kind: "restart" }))?.state).toBe("running");
      if (restarts && world.place !== null) {
        await world.close();
        world = await setup({ carries: false, sliceTasks, place: world.place, clock: world.clock });
      }
      expect(await statesOf(world, id)).toEqual(["queued", ...Array<string>(count - 1).fill("forgotten")]);
      expect(await world.board.complete(holdOf(first), '"late"')).not.toBe("ok");
      // The run is faster than the slices: each step begins before its slice.
      for (const _ of names) {
        const task = await world.claim();
        expect(task?.attempt).toBe(1);
        expect(await world.board.complete(holdOf(task), '"new"')).toBe("ok");
      }
      expect((await world.run(id)).state).toBe("succeeded");
      while (await deliverOne(world));
      const outputs = await Promise.all(names.map(async (_, at) => (await world.task(`${id}.${at}`)).output));
      expect(outputs).toEqual(names.map(() => '"new"'));
      expect((await world.runs.tell(id, { kind: "restart" }))?.retries).toBe(2);
    });

    it.each([false, true])("ends the same way when its time is over, after a restart of the server: %s", async (restarts) => {
      let world = await setup({ carries: false, sliceTasks });
      const { id } = await world.start("wide", steps, { timeoutMs: 5_000 });
      await world.clock.advance(5_000);
      expect((await world.run(id)).state).toBe("timed-out");
      if (restarts && world.place !== null) {
        await world.close();
        world = await setup({ carries: false, sliceTasks, place: world.place, clock: world.clock });
      }
      expect(await statesOf(world, id)).toEqual(names.map(() => "cancelled"));
      expect(await world.claim()).toBeUndefined();
      while (await deliverOne(world));
      expect(await statesOf(world, id)).toEqual(names.map(() => "cancelled"));
      expect((await world.runs.retry(id))?.state).toBe("running");
      expect((await world.claim())?.runId).toBe(id);
    });
  });
}
