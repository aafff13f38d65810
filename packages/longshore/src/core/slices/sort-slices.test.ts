import fc from "fast-check";
import { expect, it } from "vitest";
import { Slices, turnRows } from "./slices.ts";
import { sortInSlices } from "./sort-slices.ts";

it("a list sorted in slices equals a list sorted at once, and no slice is longer than a turn", async () => {
  const lengths = fc.constantFrom(0, 1, 7, 1_000, 1_001, 3_500);
  await fc.assert(
    fc.asyncProperty(lengths, fc.integer({ min: 1, max: 50 }), async (length, keys) => {
      const slices = new Slices();
      const items = Array.from({ length }, (_, at) => ({ at, key: (at * 7_919) % keys }));
      const compare = (a: { key: number }, b: { key: number }) => a.key - b.key;
      expect(await sortInSlices(items, compare, slices)).toEqual([...items].sort(compare));
      expect(slices.longest).toBeLessThanOrEqual(turnRows);
    }),
    { numRuns: 40 },
  );
});
