// The long form of the fault test: several rounds, each longer and with more faults than the one in `npm test`.
import { expect, it } from "vitest";
import { faultSeed, inArena } from "./arena.ts";
import { playRound } from "./round.ts";
import { chain, fanOutAndIn, independent } from "./shapes.ts";

const CHAOS_ROUNDS = 3;
const STORM_ROUNDS = 2;
const seed = faultSeed();

const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

it.each(numbers(CHAOS_ROUNDS))("no promise is broken in round %i of long chaos", async (round) => {
  await inArena(async (arena) => {
    const onServer = { "kill-server": 6, "end-server": 2, "stop-server": 2 };
    const onOthers = { "kill-worker": 12, "stop-worker": 8, "silence-link": 6, "cut-link": 10, "cancel-run": 30 };
    const counts = { ...onServer, ...onOthers };
    const { final } = await playRound(arena, { seed: seed + round, durationMs: 25_000, runs: 200, workers: 5, counts });
    expect(final.runs).toHaveLength(200);
  });
});

// With jobs that take no time, the server writes without a pause. So a kill nearly always interrupts a commit with many changes.
it.each(numbers(STORM_ROUNDS))("no promise is broken in storm %i, with the server killed under full load", async (round) => {
  await inArena(async (arena) => {
    const counts = { "kill-server": 10, "end-server": 2, "kill-worker": 4, "cut-link": 8, "cancel-run": 25 };
    const load = { runs: 150, workers: 4, workMs: [0, 3] as [number, number], shapes: [fanOutAndIn(40), independent(40), chain(12)] };
    const { final } = await playRound(arena, { seed: seed + 100 + round, durationMs: 20_000, ...load, counts });
    expect(final.runs).toHaveLength(150);
  });
});
