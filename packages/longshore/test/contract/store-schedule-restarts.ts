// Schedules on the store: what happens to ticks that were missed while no server was running.

import { describe, expect, it } from "vitest";
import { hourMs, minuteMs, outcomes, scheduled, shown, workOff } from "./schedule-world.ts";
import type { Setup } from "./store.ts";
import type { World } from "./world.ts";

export function scheduleRestartContract(setup: Setup): void {
  const reopen = async (world: World, downMs: number): Promise<World> => {
    await world.close();
    await world.clock.advance(downMs);
    return setup({ place: world.place, clock: world.clock });
  };

  describe("a schedule after a downtime", () => {
    it("continues at its position", async () => {
      let world = await scheduled(setup);
      await world.clock.advance(90_000);
      world = await reopen(world, 20_000);
      expect(await workOff(world)).toBe(1);
      await world.clock.advance(10_000);
      expect(await workOff(world)).toBe(1);
    });

    it("starts the last of the ticks that it has missed, and counts the others", async () => {
      let world = await scheduled(setup);
      const start = world.clock.now();
      world = await reopen(world, 10 * minuteMs + 1);
      await world.clock.advance(0);
      expect(await outcomes(world, start)).toEqual(["1 missed 9", "10 started"]);
      expect(await workOff(world)).toBe(1);
    });

    it("starts all of them in order when its rule requires this", async () => {
      let world = await scheduled(setup, { every: "1m", catchUp: "all", overlap: "allow" });
      const start = world.clock.now();
      world = await reopen(world, 5 * minuteMs);
      await world.clock.advance(0);
      expect(await outcomes(world, start)).toEqual([1, 2, 3, 4, 5].map((minute) => `${minute} started`));
      expect(await workOff(world)).toBe(5);
    });

    it("does not start ticks that are older than its window", async () => {
      let world = await scheduled(setup, { every: "10m", catchUpWindow: "3m", catchUp: "all", overlap: "allow" });
      const start = world.clock.now();
      world = await reopen(world, 35 * minuteMs);
      await world.clock.advance(0);
      expect(await outcomes(world, start)).toEqual(["10 missed 3"]);
      await world.clock.advance(5 * minuteMs);
      expect(await workOff(world)).toBe(1);
    });

    it("finds its place among millions of missed ticks at once", async () => {
      let world = await scheduled(setup, { every: "1s" });
      world = await reopen(world, 300 * 24 * hourMs);
      await world.clock.advance(0);
      const [last, missed] = (await shown(world)).history;
      expect([last?.outcome, missed?.outcome, missed?.count]).toEqual(["started", "missed", 100]);
      expect(last?.at).toBe(Math.floor(world.clock.now() / 1_000) * 1_000);
    });

    it("continues with ticks that waited and with a backfill", async () => {
      let world = await scheduled(setup, { every: "1m", overlap: "queue" });
      const now = world.clock.now();
      await world.schedules.backfill("s", { from: now - 2 * minuteMs, to: now - minuteMs, overlap: "queue" });
      await world.clock.advance(2 * minuteMs);
      expect((await shown(world)).queued.length).toBe(1);
      await world.schedules.pause("s", "x");
      world = await reopen(world, 1);
      expect(await workOff(world)).toBe(2);
      await world.schedules.resume("s");
      for (let round = 0; round < 3; round++) {
        await world.clock.advance(0);
        await workOff(world);
      }
      expect(await shown(world)).toMatchObject({ queued: [], backfill: null });
    });

    it("returns to the present when its position comes from a clock that was wrong", async () => {
      const dayMs = 24 * hourMs;
      const first = await scheduled(setup, { every: "1d", overlap: "allow" });
      const start = first.clock.now();
      await first.clock.advance(40 * dayMs);
      expect((await shown(first)).lastAt).toBe(start + 40 * dayMs);
      await first.close();
      // The same store with a correct clock.
      const world = await setup({ place: first.place });
      expect(world.clock.now()).toBe(start);
      expect((await shown(world)).nextAt).toBe(start + dayMs);
      await world.clock.advance(dayMs);
      // Its run exists, from the time of the wrong clock.
      expect((await shown(world)).history[0]).toMatchObject({ outcome: "present", at: start + dayMs });
    });
  });
}
