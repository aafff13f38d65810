// Distant deadlines of waits and of runs. They are only rows until their time is near.

import { describe, expect, it } from "vitest";
import { type Command, functionLane } from "../../src/core/turn.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, turns, type World } from "./world.ts";

const dayMs = 86_400_000;
const lane = functionLane("f");

/** A run of the function `f` whose first turn gives this command. */
async function waitFor(world: World, command: Partial<Command>): Promise<string> {
  await world.runs.define({ name: "f", dialect: "function", source: JSON.stringify({ name: "f", function: true }) });
  const { run } = await world.runs.start({ workflow: "f", input: "null" });
  await turns();
  const task = await world.claim([lane, functionLane("f", "w")], { holder: "w" });
  const report = { by: "w-1", commands: [{ node: 1, after: 0, name: "", ...command }] };
  await world.board.complete(holdOf(task), JSON.stringify(report));
  return run.id;
}

/** The rows of a store on another machine are read while the clock waits. */
async function pass({ clock }: World, ms: number): Promise<void> {
  await clock.advance(ms);
  await turns();
  await clock.advance(0);
}

const stateOf = async (world: World, runId: string) => (await world.task(`${runId}.1`)).state;

export function sleepersContract(setup: Setup): void {
  describe("a distant deadline", () => {
    it("ends sleeps, waits for signals, and runs in time", async () => {
      const world = await setup();
      const now = world.clock.now();
      const sleeper = await waitFor(world, { kind: "sleep", until: now + 30 * dayMs });
      const waiter = await waitFor(world, { kind: "signal", name: "go", totalMs: 20 * dayMs });
      const timed = await world.start("timed", [step("a")], { timeoutMs: 10 * dayMs });
      await pass(world, 10 * dayMs - 1);
      expect((await world.run(timed.id)).state).toBe("running");
      await pass(world, 1);
      expect((await world.run(timed.id)).state).toBe("timed-out");
      await pass(world, 10 * dayMs - 1);
      expect(await stateOf(world, waiter)).toBe("queued");
      await pass(world, 1);
      expect(await stateOf(world, waiter)).toBe("failed");
      await pass(world, 10 * dayMs - 1);
      expect(await stateOf(world, sleeper)).toBe("queued");
      await pass(world, 1);
      expect(await stateOf(world, sleeper)).toBe("done");
    });

    it("ends more waits than are read at once, when all are due together", async () => {
      const world = await setup();
      const until = world.clock.now() + dayMs;
      const ids: string[] = [];
      // More than fit into one page.
      for (let at = 0; at < 11; at++) {
        const commands = Array.from({ length: 100 }, (_, node) => ({ kind: "sleep", node: node + 1, after: 0, name: "", until }));
        await world.runs.define({ name: "f", dialect: "function", source: JSON.stringify({ name: "f", function: true }) });
        const { run } = await world.runs.start({ workflow: "f", input: "null" });
        await turns(1);
        const task = await world.claim([lane], { holder: "w" });
        await world.board.complete(holdOf(task), JSON.stringify({ by: "w-1", commands }));
        ids.push(run.id);
      }
      await pass(world, dayMs - 1);
      for (const id of ids) expect((await world.run(id)).left).toBe(100);
      await pass(world, 1);
      for (const id of ids) expect((await world.run(id)).left).toBe(0);
    });

    it("is removed when the run is cancelled", async () => {
      const world = await setup();
      const sleeper = await waitFor(world, { kind: "sleep", until: world.clock.now() + dayMs });
      await world.runs.cancel(sleeper);
      await pass(world, 2 * dayMs);
      expect(await stateOf(world, sleeper)).toBe("cancelled");
      expect((await world.run(sleeper)).state).toBe("cancelled");
    });
  });
}

export function sleepersRestartContract(setup: Setup): void {
  describe("a distant deadline", () => {
    it("has its effect after a restart, also when it passed while no server ran", async () => {
      let world = await setup();
      const { clock } = world;
      const reopen = async () => {
        await world.close();
        world = await setup({ place: world.place, clock });
      };
      const early = await waitFor(world, { kind: "sleep", until: clock.now() + dayMs });
      const late = await waitFor(world, { kind: "sleep", until: clock.now() + 3 * dayMs });
      const timed = await world.start("timed", [step("a")], { timeoutMs: 3 * dayMs });
      const delayed = await world.start("w", [step("b")]);
      await world.close();
      await clock.advance(2 * dayMs);
      world = await setup({ place: world.place, clock });
      await pass(world, 0);
      expect(await stateOf(world, early)).toBe("done");
      expect(await stateOf(world, late)).toBe("queued");
      await reopen();
      await pass(world, dayMs);
      expect(await stateOf(world, late)).toBe("done");
      expect((await world.run(timed.id)).state).toBe("timed-out");
      expect((await world.run(delayed.id)).state).toBe("running");
    });

    it("does not change the order of waits for one signal over a restart", async () => {
      const world = await setup();
      const { clock } = world;
      await world.runs.define({ name: "f", dialect: "function", source: JSON.stringify({ name: "f", function: true }) });
      const { run } = await world.runs.start({ workflow: "f", input: "null" });
      await turns();
      const signal = (node: number) => ({ kind: "signal", node, after: 0, name: "go" });
      const first = await world.claim(lane, { holder: "w" });
      await world.board.command(holdOf(first), JSON.stringify({ by: "w-1", commands: [signal(1)] }));
      await world.close();
      const again = await setup({ place: world.place, clock });
      expect(await again.board.complete(holdOf(first), JSON.stringify({ by: "w-1", commands: [signal(2)] }))).toBe("ok");
      await again.signals.send(run.id, { name: "go", value: "1" });
      expect([await again.task(`${run.id}.1`), await again.task(`${run.id}.2`)].map(({ state }) => state)).toEqual(["done", "queued"]);
    });
  });
}
