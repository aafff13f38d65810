// Starts that come close together become one run, with the input of the last.

import { describe, expect, it } from "vitest";
import type { DebounceSource } from "../../src/core/debounce.ts";
import type { Run } from "../../src/engine/run/run.ts";
import type { Setup } from "./store.ts";
import { holdOf, step, turns, type World, type WorldOptions } from "./world.ts";

const byDocument: DebounceSource = { key: "document", periodMs: 1_000 };

async function debounced(setup: Setup, debounce: DebounceSource = byDocument, options?: WorldOptions): Promise<World> {
  const world = await setup(options);
  await world.define("save", [step("a")], { debounce, timeoutMs: 60_000 });
  return world;
}

async function save(world: World, version: number, parts: { document?: string; key?: string; delayMs?: number } = {}) {
  const { document = "plan", ...options } = parts;
  return world.runs.start({ workflow: "save", input: JSON.stringify({ document, version }), ...options });
}

const versionOf = ({ input }: Run) => (JSON.parse(input) as { version: number }).version;

export function debounceContract(setup: Setup): void {
  describe("a workflow that debounces its starts", () => {
    it("makes one run of starts that come close together, with the input of the last", async () => {
      const world = await debounced(setup);
      const first = await save(world, 1);
      expect(first).toMatchObject({ created: true, run: { state: "running", active: 0, startAt: world.clock.now() + 1_000, endBy: null } });
      await world.clock.advance(900);
      const second = await save(world, 2);
      expect(second).toMatchObject({ created: false, run: { id: first.run.id, startAt: world.clock.now() + 1_000 } });
      await world.clock.advance(999);
      expect((await world.run(first.run.id)).active).toBe(0);
      await world.clock.advance(1);
      const run = await world.run(first.run.id);
      expect([run.active, versionOf(run), run.endBy]).toEqual([1, 2, world.clock.now() + 60_000]);
      // The next start makes a new run, although this one is open.
      expect(await save(world, 3)).toMatchObject({ created: true });
    });

    it("begins a run at the latest after the longest time, however many starts come", async () => {
      const world = await debounced(setup, { ...byDocument, atMostMs: 2_500 });
      const { run } = await save(world, 0);
      for (let version = 1; version <= 3; version++) {
        await world.clock.advance(800);
        expect(await save(world, version)).toMatchObject({ created: false, run: { id: run.id } });
      }
      expect((await world.run(run.id)).startAt).toBe(run.createdAt + 2_500);
      await world.clock.advance(100);
      const begun = await world.run(run.id);
      expect([begun.active, versionOf(begun)]).toEqual([1, 3]);
    });

    it("keeps starts with different values of its key apart", async () => {
      const world = await debounced(setup);
      const plan = await save(world, 1);
      const other = await save(world, 2, { document: "other" });
      expect([plan.created, other.created]).toEqual([true, true]);
      expect(await save(world, 3, { document: "other" })).toMatchObject({ created: false, run: { id: other.run.id } });
    });

    it("returns its run to each start with a key that has come to it", async () => {
      const world = await debounced(setup);
      const { run } = await save(world, 1, { key: "one" });
      await save(world, 2, { key: "two" });
      for (const [version, key] of [
        [1, "one"],
        [2, "two"],
      ] as const) {
        const again = await save(world, version, { key });
        expect([again.created, again.run.id, versionOf(again.run)]).toEqual([false, run.id, 2]);
      }
    });

    it("makes a new run after the one that waited was cancelled", async () => {
      const world = await debounced(setup);
      const { run } = await save(world, 1);
      await world.runs.cancel(run.id);
      expect(await save(world, 2)).toMatchObject({ created: true });
      expect(versionOf(await world.run(run.id))).toBe(1);
    });

    it("uses the newest version of the workflow for a run that waits", async () => {
      const world = await debounced(setup);
      const { run } = await save(world, 1);
      await world.define("save", [step("a"), step("b")], { debounce: byDocument });
      await save(world, 2);
      await world.clock.advance(1_000);
      expect(await world.run(run.id)).toMatchObject({ active: 2, left: 2 });
    });

    it("does not hold back ticks of schedules, child runs, and starts with a delay", async () => {
      const world = await debounced(setup);
      const parent = await world.start("parent", [step("child", { workflow: "save", input: { document: "plan" } })]);
      await turns();
      const task = await world.claim("a");
      expect((await world.run(task?.runId ?? "")).parentTaskId).toBe(`${parent.id}.0`);
      await world.board.complete(holdOf(task), "1");
      await world.schedules.put({ name: "s", rules: { workflow: "save", every: "1m" }, input: '{"document":"plan"}' });
      await world.clock.advance(60_000);
      expect(await world.claim("a")).toBeDefined();
      const delayed = [await save(world, 1, { delayMs: 10 }), await save(world, 2, { delayMs: 10 })];
      expect(delayed.map(({ created }) => created)).toEqual([true, true]);
    });

    it("takes its place at a start limit when it begins", async () => {
      const world = await setup();
      await world.define("save", [step("a")], { debounce: byDocument, limit: { key: "document" } });
      const { run: first } = await save(world, 1);
      await world.clock.advance(1_000);
      const { run: second } = await save(world, 2);
      await world.clock.advance(1_000);
      expect(await world.run(second.id)).toMatchObject({ turn: 1, active: 0 });
      await world.board.complete(holdOf(await world.claim("a")), "1");
      expect([(await world.run(first.id)).state, (await world.run(second.id)).active]).toEqual(["succeeded", 1]);
    });
  });
}

/** For stores whose data outlives the process. */
export function debounceRestartContract(setup: Setup): void {
  describe("a workflow that debounces its starts, after a restart", () => {
    it("replaces the input of the run that waits", async () => {
      const world = await debounced(setup);
      const { run } = await save(world, 1);
      await world.close();
      const next = await setup({ place: world.place, clock: world.clock });
      expect(await save(next, 2)).toMatchObject({ created: false, run: { id: run.id } });
      await next.clock.advance(1_000);
      expect(versionOf(await next.run(run.id))).toBe(2);
    });
  });
}
