// A thousand sequences of absences, different ones in every run.
import { expect, it } from "vitest";
import { faultSeed } from "./arena.ts";
import { playAbsences } from "./flowkit-absences.ts";

const STORIES = 1_000;
const first = faultSeed();

it.each(Array.from({ length: STORIES }, (_, index) => index))("the graph of seed %i ends and misses no input", async (story) => {
  const { absences, violations } = await playAbsences(first + story, { batches: 6, ms: 0 });
  expect({ absences, violations }).toEqual({ absences, violations: [] });
});
