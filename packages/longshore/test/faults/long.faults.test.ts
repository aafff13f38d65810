// The long form of the fault proof: several rounds, each longer and rougher than the one in `npm test`.
import { expect, it } from "vitest";
import { faultSeed, inArena } from "./arena.ts";
import { playRound } from "./round.ts";

const ROUNDS = 4;
const seed = faultSeed();

it.each(Array.from({ length: ROUNDS }, (_, round) => round + 1))("no promise is broken in round %i of long chaos", async (round) => {
  await inArena(async (arena) => {
    const onServer = { "kill-server": 6, "end-server": 2, "stop-server": 2 };
    const onOthers = { "kill-worker": 12, "stop-worker": 8, "silence-link": 6, "cut-link": 10, "cancel-run": 30 };
    const counts = { ...onServer, ...onOthers };
    const { final } = await playRound(arena, { seed: seed + round, durationMs: 25_000, runs: 200, workers: 5, counts });
    expect(final.runs).toHaveLength(200);
  });
});
