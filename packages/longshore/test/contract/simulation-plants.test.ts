// Shows that the simulation finds faults: each is added to an engine that passes the same seeds without it (simulation-news.test.ts,
// simulation-breaks.test.ts, simulation-owners.test.ts).

import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type How, simulate } from "./simulation.ts";
import { type Disk, openDisk } from "./simulation-disk.ts";
import type { Plant } from "./simulation-plants.ts";

/** Among the seeds that the correct engine passes. */
const seedsMax = 100;
const timeoutMs = 120_000;

describe("the simulation", () => {
  let disk: Disk;
  beforeAll(async () => {
    disk = await openDisk();
  });
  afterAll(() => disk.close());

  it.each<[Plant, How, RegExp]>([
    ["ends of an earlier life", { overtakes: true }, /was told that \w+ has ended, which is running in life/],
    ["cancels of an earlier life", { overtakes: true }, /was cancelled in life \d+ by what had happened to/],
    ["renewal in the middle of a commit", { breaks: true }, /is held|steps left|memory says|completed twice/],
    ["readers of uncommitted rows", { breaks: true }, /never committed/],
    ["hand-outs that go back with their link", { breaks: true }, /was handed out at|is live until/],
    ["inputs that are replaced in memory alone", {}, /which has the input of the earlier start/],
    ["rows of debounced starts that stay", {}, /the rows of debounced starts name/],
    ["endless trust", { lives: true }, /an owner that had been replaced|is live until/],
  ])(
    "finds a planted fault: %s",
    async (plant, how, told) => {
      let found: string | undefined;
      for (let seed = 1; seed <= seedsMax && found === undefined; seed++)
        await simulate(seed, disk, { ...how, plant }).catch((error: Error) => {
          found = error.message.split("\n")[0];
        });
      expect(found).toMatch(told);
    },
    timeoutMs,
  );
});
