// Dozens of random durable functions. `LONGSHORE_SIM_SEED=7 npx vitest run --project unit simulation-functions` runs only seed 7.

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Disk, openDisk } from "./simulation-disk.ts";
import { type Outcome, playFunctions, type Trouble } from "./simulation-functions.ts";
import type { Fault } from "./simulation-process.ts";

const perTest = 20;
/** Far above what is needed: a loaded machine must not fail a simulation. */
const timeoutMs = 120_000;
/** A server and a worker with many faults. */
export const trouble: Trouble = { crashes: 0.1, lost: 0.1, repeated: 0.3 };
/** The same, with an operator. */
const orders: Trouble = { crashes: 0.03, lost: 0.05, repeated: 0.3, orders: 0.12 };
const crashes: readonly Fault[] = ["crash-before-commit", "crash-after-commit"];

/** Runs the seeds with faults, and the seeds up to `every` with a crash before and after each of their commits. */
export function functionsSuite(first: number, last: number, every: number): void {
  describe("random functions in a simulation with crashes", () => {
    let disk: Disk;
    beforeAll(async () => {
      disk = await openDisk();
    });
    afterAll(() => disk.close());

    const only = process.env.LONGSHORE_SIM_SEED;
    const [from, to] = only === undefined ? [first, last] : [Number(only), Number(only)];
    for (let seed = from; seed <= to; seed += perTest) {
      const end = Math.min(seed + perTest - 1, to);
      it(`have the same result with seeds ${seed} to ${end}`, () => playAll(seed, end, disk, only === undefined), timeoutMs);
      it(`have the same result under any operator commands with seeds ${seed} to ${end}`, () => playOrders(seed, end, disk), timeoutMs);
    }
    for (let seed = from; seed <= (only === undefined ? every : to); seed++)
      it(`have the same result with a crash at each commit of seed ${seed}`, () => crashAtEach(seed, disk), timeoutMs);
  });
}

async function playAll(from: number, to: number, disk: Disk, isMany: boolean): Promise<void> {
  const total = { crashes: 0, lost: 0, replays: 0, locals: 0, foreseen: 0 };
  for (let seed = from; seed <= to; seed++) {
    const outcome: Outcome = await playFunctions(seed, disk, trouble);
    for (const key of ["crashes", "lost", "replays", "locals", "foreseen"] as const) total[key] += outcome[key];
  }
  if (!isMany) return;
  // A simulation in which nothing happens proves nothing.
  const seeds = to - from + 1;
  expect(total.crashes).toBeGreaterThan(seeds);
  expect(total.replays).toBeGreaterThan(seeds);
  expect(total.lost).toBeGreaterThan(seeds / 2);
  expect(total.locals).toBeGreaterThan(seeds / 4);
  expect(total.foreseen).toBeGreaterThan(0);
}

async function playOrders(from: number, to: number, disk: Disk): Promise<void> {
  let count = 0;
  for (let seed = from; seed <= to; seed++) count += (await playFunctions(seed, disk, orders)).orders;
  expect(count).toBeGreaterThan(to - from);
}

async function crashAtEach(seed: number, disk: Disk): Promise<void> {
  const { commits } = await playFunctions(seed, disk);
  expect(commits).toBeGreaterThan(3);
  for (let commit = 1; commit <= commits; commit++)
    for (const fault of crashes) expect((await playFunctions(seed, disk, { at: { commit, fault } })).crashes).toBe(1);
}
