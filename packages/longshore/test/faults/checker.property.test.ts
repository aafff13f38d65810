// Random correct histories pass the checker, and the same histories with one added defect do not.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { check, describeViolations } from "./checker.ts";
import { CORRUPTIONS } from "./corruptions.ts";
import { type Move, playWorld } from "./worlds.ts";

const RUNS = 150;
const index = fc.nat({ max: 30 });

const move: fc.Arbitrary<Move> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant("start" as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("claim" as const),
      worker: index,
      delayMs: fc.integer({ min: 1, max: 1500 }),
      lost: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("beat" as const), lease: index }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("report" as const),
      lease: index,
      verb: fc.constantFrom("complete" as const, "complete" as const, "fail" as const),
      lost: fc.integer({ min: 0, max: 9 }).map((roll) => roll === 0),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const), run: index }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.integer({ min: 1, max: 1200 }) }) },
);

const moves = fc.array(move, { minLength: 10, maxLength: 80, size: "max" });

describe("random histories", () => {
  it("a history of a world that keeps every promise passes", () => {
    fc.assert(
      fc.property(moves, (played) => {
        const { pages, final } = playWorld(played);
        expect(describeViolations(check(pages.entries(), final))).toBe("");
      }),
      { numRuns: RUNS },
    );
  });

  it.each(Object.entries(CORRUPTIONS))("the checker notices when %s", (_name, { rule, apply }) => {
    let applied = 0;
    fc.assert(
      fc.property(moves, index, (played, pick) => {
        const { pages, final } = playWorld(played);
        const history = pages.entries();
        if (!apply(history, final, pick)) return;
        applied += 1;
        expect(check(history, final).map((found) => found.rule)).toContain(rule);
      }),
      { numRuns: RUNS },
    );
    // A defect that fits into almost no history would pass without a test.
    expect(applied).toBeGreaterThan(RUNS / 20);
  });
});
