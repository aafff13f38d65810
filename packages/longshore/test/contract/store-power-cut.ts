// The possible states after a power cut between any two commits.

import { describe, expect, it } from "vitest";
import type { Setup } from "./store.ts";
import { holdOf, type StoreKind, step, termMs, type World } from "./world.ts";

export function powerCutContract(setup: Setup, kind: StoreKind): void {
  describe("a power cut", () => {
    it("after any commit leaves a run that continues to its end, with no step lost and none started twice", async () => {
      const world = await setup();
      const steps = [step("a"), step("b", { after: ["a"] }), step("c", { after: ["a"] }), step("d", { after: ["b", "c"] })];
      const cuts: string[] = [];
      world.probe.after = async () => cuts.push(await kind.copy(world.place as string));
      const { id } = await world.start("w", steps);
      await finish(world);
      expect((await world.run(id)).state).toBe("succeeded");
      expect(cuts).toHaveLength(10);
      const counts = [];
      // The first commit contains only the definition: there is no run yet.
      for (const cut of cuts.slice(1)) {
        const after = await setup({ place: cut, clock: world.clock });
        const { left } = await after.run(id);
        counts.push(left);
        const states = await Promise.all(steps.map(async (_, at) => (await after.board.task(`${id}.${at}`))?.state));
        expect(states.filter((state) => state === "done")).toHaveLength(4 - left);
        await after.clock.advance(termMs);
        await finish(after);
        expect((await after.run(id)).state).toBe("succeeded");
        await after.close();
      }
      expect(counts).toEqual([4, 4, 3, 3, 2, 2, 1, 1, 0]);
    });

    it("never shows a completion without the steps that follow from it", async () => {
      const world = await setup();
      const { id } = await world.start("w", [step("a"), step("b", { after: ["a"] })]);
      const hold = holdOf(await world.claim("a"));
      const cuts: string[] = [];
      world.probe.after = async () => cuts.push(await kind.copy(world.place as string));
      await world.board.complete(hold, "1");
      expect(cuts).toHaveLength(1);
      const after = await setup({ place: cuts[0], clock: world.clock });
      expect([(await after.task(`${id}.0`)).state, (await after.task(`${id}.1`)).state]).toEqual(["done", "queued"]);
    });
  });
}

/** Claims and completes everything, one after the other. */
async function finish(world: World): Promise<void> {
  for (let task = await world.claim(["a", "b", "c", "d"]); task !== undefined; task = await world.claim(["a", "b", "c", "d"])) {
    await world.board.complete(holdOf(task), "1");
  }
}
