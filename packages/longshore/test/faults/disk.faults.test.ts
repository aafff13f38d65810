// A disk that is full again and again under load, with the server killed on it now and then.
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { type Arena, faultSeed, inArena } from "./arena.ts";
import { seededRandom } from "./random.ts";
import { playRound } from "./round.ts";
import { type SmallDisk, smallTmpfs } from "./small-disk.ts";

/** Space for the whole round, including its write-ahead log, when nothing else is on the disk. */
const MEGABYTES = 64;
const RUNS = 120;
const FREE_MS: [number, number] = [300, 1500];
const FULL_MS: [number, number] = [100, 1800];
const KILL_CHANCE = 1 / 4;

async function fillAgainAndAgain(disk: SmallDisk, { server, note }: Arena, seed: number, over: AbortSignal): Promise<void> {
  const random = seededRandom(seed);
  while (!over.aborted) {
    await pause(random.between(...FREE_MS));
    disk.fill(0);
    note({ kind: "disk-full" });
    await pause(random.between(...FULL_MS));
    const killed = random.chance(KILL_CHANCE);
    if (killed) await server.kill();
    disk.makeRoom(0);
    note({ kind: "disk-free" });
    if (killed) await server.start();
  }
}

it("no promise is broken while the disk is full again and again", async (context) => {
  const missing = smallTmpfs.missing();
  if (missing) return context.skip(`needs ${missing}`);
  const seed = faultSeed();
  const disk = smallTmpfs.open(MEGABYTES);
  try {
    await inArena(
      async (arena) => {
        const beside = (over: AbortSignal): Promise<void> => fillAgainAndAgain(disk, arena, seed, over);
        const counts = { "kill-worker": 4, "stop-worker": 2, "cut-link": 4, "silence-link": 2, "cancel-run": 15 };
        const { final, history } = await playRound(arena, { seed, durationMs: 20_000, runs: RUNS, workers: 4, counts, beside });
        expect(final.runs).toHaveLength(RUNS);
        expect(history.filter((entry) => entry.kind === "disk-full").length).toBeGreaterThan(0);
      },
      { data: disk.directory },
    );
  } finally {
    disk.close();
  }
});
