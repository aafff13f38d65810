// Hundreds of simulations. `LONGSHORE_SIM_SEED=7 npx vitest run --project unit simulation` runs only seed 7.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type How, simulate } from "./simulation.ts";
import { type Disk, openDisk } from "./simulation-disk.ts";

const perTest = 25;
/** Far above what is needed: a loaded machine must not fail a simulation. */
const timeoutMs = 120_000;

export function simulationSuite(first: number, last: number, how: How = {}): void {
  const place = placeOf(how);
  describe(`in a simulation ${place}, with any schedule`, () => {
    let disk: Disk;
    beforeAll(async () => {
      disk = await openDisk();
    });
    afterAll(() => disk.close());

    const only = process.env.LONGSHORE_SIM_SEED;
    if (only !== undefined) {
      it(`every promise holds with seed ${only}`, async () => void (await simulate(Number(only), disk, how)), timeoutMs);
      return;
    }
    for (let from = first; from <= last; from += perTest) {
      const to = Math.min(from + perTest - 1, last);
      it(`every promise holds with seeds ${from} to ${to}`, () => playAll(from, to, disk, how), timeoutMs);
    }
  });
}

function placeOf({ late, breaks, lives, overtakes }: How): string {
  if (overtakes) return "where runs begin again before the news of their end";
  if (lives) return "of owners that replace each other while the old ones go on";
  if (breaks) return "on a database whose connections break, with readers in the middle of commits";
  return late ? "on rows that are read later" : "in memory";
}

async function playAll(from: number, to: number, disk: Disk, how: How): Promise<void> {
  const total = { crashes: 0, refusals: 0, completions: 0, takeovers: 0 };
  for (let seed = from; seed <= to; seed++) {
    const outcome = await simulate(seed, disk, how);
    for (const key of ["crashes", "refusals", "completions", "takeovers"] as const) total[key] += outcome[key];
  }
  // A simulation in which nothing happens proves nothing.
  const seeds = to - from + 1;
  expect(total.crashes).toBeGreaterThan(2 * seeds);
  expect(total.refusals).toBeGreaterThan(2 * seeds);
  expect(total.completions).toBeGreaterThan(2 * seeds);
  if (how.lives) expect(total.takeovers).toBeGreaterThan(2 * seeds);
}
