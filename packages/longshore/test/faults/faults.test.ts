// The short form of the fault proof, for every run of the tests; `npm run faults` plays the long one.
import { expect, it } from "vitest";
import { faultSeed, inArena } from "./arena.ts";
import { playRound } from "./round.ts";

it("no promise is broken while the server and its workers are killed, stopped and brought back", async () => {
  const seed = faultSeed();
  await inArena(async (arena) => {
    const counts = { "kill-server": 3, "kill-worker": 3, "stop-worker": 2, "cancel-run": 5 };
    const { final } = await playRound(arena, { seed, durationMs: 8000, runs: 50, workers: 3, counts });
    expect(final.runs).toHaveLength(50);
  });
});
