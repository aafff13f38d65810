// Runs that were started with a delay. They begin when it has passed, also after a restart, and can be stopped before.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, step, type World } from "./world.ts";

async function startLater(world: World, delayMs: number, timeoutMs?: number): Promise<string> {
  await world.define("w", [step("a"), step("b", { after: ["a"] })], timeoutMs === undefined ? {} : { timeoutMs });
  return (await world.runs.start({ workflow: "w", input: "1", delayMs, priority: 7 })).run.id;
}

export function delayContract(setup: Setup): void {
  describe("a run with a delay", () => {
    it("has no tasks until the delay has passed, and then begins with its priority", async () => {
      const world = await setup();
      const id = await startLater(world, 5_000);
      expect(await world.run(id)).toMatchObject({ state: "running", active: 0, startAt: world.clock.now() + 5_000 });
      await world.clock.advance(4_999);
      expect(await world.claim("a")).toBeUndefined();
      await world.clock.advance(1);
      expect(await world.run(id)).toMatchObject({ state: "running", active: 1, left: 2, startAt: null });
      expect(await world.claim("a")).toMatchObject({ runId: id, priority: 7, postedAt: world.clock.now() });
    });

    it("counts its timeout from its beginning", async () => {
      const world = await setup();
      const id = await startLater(world, 5_000, 1_000);
      expect((await world.run(id)).endBy).toBeNull();
      await world.clock.advance(5_999);
      expect((await world.run(id)).state).toBe("running");
      await world.clock.advance(1);
      expect((await world.run(id)).state).toBe("timed-out");
    });

    it("can be cancelled before it begins, and retried then", async () => {
      const world = await setup();
      const id = await startLater(world, 5_000);
      expect(await world.runs.cancel(id, "changed my mind")).toMatchObject({ state: "cancelled", error: "changed my mind", startAt: null });
      await world.clock.advance(10_000);
      expect(await world.claim("a")).toBeUndefined();
      expect(await world.runs.retry(id)).toMatchObject({ state: "running", active: 1, startAt: null });
      for (const lane of ["a", "b"]) await world.board.complete(holdOf(await world.claim(lane)), "1");
      expect((await world.run(id)).state).toBe("succeeded");
    });

    it("begins when it is resumed, if it was paused over its time", async () => {
      const world = await setup();
      const id = await startLater(world, 5_000, 60_000);
      await world.runs.tell(id, { kind: "pause" });
      await world.clock.advance(10_000);
      expect(await world.run(id)).toMatchObject({ state: "paused", active: 0 });
      await world.runs.tell(id, { kind: "resume" });
      await world.clock.advance(0);
      expect(await world.run(id)).toMatchObject({ state: "running", startAt: null, active: 1, endBy: world.clock.now() + 60_000 });
      expect(await world.claim("a")).toBeDefined();
    });

    it("that is resumed before its time still waits for it", async () => {
      const world = await setup();
      const id = await startLater(world, 5_000, 60_000);
      await world.runs.tell(id, { kind: "pause" });
      await world.runs.tell(id, { kind: "resume" });
      expect(await world.run(id)).toMatchObject({ state: "running", endBy: null });
      await world.clock.advance(4_999);
      expect(await world.claim("a")).toBeUndefined();
      await world.clock.advance(1);
      expect(await world.claim("a")).toBeDefined();
    });

    it("is found by its key before it begins", async () => {
      const world = await setup();
      await world.define("w", [step("a")]);
      const start = (delayMs: number) => world.runs.start({ workflow: "w", input: "null", key: "k", delayMs });
      const { run } = await start(5_000);
      expect(await start(0)).toMatchObject({ created: false, run: { id: run.id, startAt: run.startAt } });
    });
  });
}

/** For stores whose data outlives the process. */
export function delayRestartContract(setup: Setup): void {
  it("a run with a delay begins at its time after a restart, and at once when that has passed", async () => {
    let world = await setup();
    const soon = await startLater(world, 5_000);
    const late = await startLater(world, 60_000);
    await world.close();
    world.clock.jump(10_000);
    world = await setup({ place: world.place, clock: world.clock });
    await world.clock.advance(0);
    const first = await world.claim("a");
    expect(first).toMatchObject({ runId: soon });
    await world.board.complete(holdOf(first), "1");
    expect(await world.claim("a")).toBeUndefined();
    await world.clock.advance(50_000);
    expect(await world.claim("a")).toMatchObject({ runId: late });
  });
}
