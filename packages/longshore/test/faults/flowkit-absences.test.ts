// Sequences of absences, each from a seed: nothing is lost or missed, everything ends, and no node begins again without a reason.
import { expect, it } from "vitest";
import { playAbsences } from "./flowkit-absences.ts";

const SHAPE = { batches: 6, ms: 0 };
const SEEDS = Array.from({ length: 25 }, (_, index) => index + 1);

it.each(SEEDS)("workers of the reference complete a graph, although others are down for a while (seed %i)", async (seed) => {
  const { absences, violations } = await playAbsences(seed, SHAPE);
  expect({ absences, violations }).toEqual({ absences, violations: [] });
});
