// Long rounds of the fault proof on Stepflow's queues: over gRPC, and through a NATS server that is killed as well.
import { setTimeout as pause } from "node:timers/promises";
import { expect, it } from "vitest";
import { natsMissing, TestNats } from "../support/nats.ts";
import { faultSeed, inArena } from "./arena.ts";
import { seededRandom } from "./random.ts";
import { playRound } from "./round.ts";
import { STEPFLOW_TERM_MS, stepflowWire } from "./stepflow-wire.ts";

const ON_SERVER = { "kill-server": 8, "end-server": 4, "stop-server": 2 };
const ON_OTHERS = { "kill-worker": 10, "stop-worker": 4, "silence-link": 4, "cut-link": 10, "cancel-run": 15 };

it("no promise is broken over gRPC in a long round", async () => {
  const seed = faultSeed();
  await inArena(
    async (arena) => {
      const counts = { ...ON_SERVER, ...ON_OTHERS };
      const { final } = await playRound(arena, { seed, durationMs: 60_000, runs: 200, workers: 5, counts, termMs: STEPFLOW_TERM_MS });
      expect(final.runs).toHaveLength(200);
    },
    { wire: stepflowWire() },
  );
});

/** How long NATS lives, at least and at most, before it is killed; and how long it stays away. */
const LIFE_MS: [number, number] = [1_000, 4_000];
const AWAY_MS_MAX = 500;

it("no promise is broken through NATS in a long round, while NATS dies too", async (context) => {
  if (natsMissing) return context.skip(`needs ${natsMissing}`);
  const seed = faultSeed();
  const nats = await TestNats.start();
  const killNats = async (over: AbortSignal): Promise<void> => {
    const random = seededRandom(seed);
    for (let kills = 0; !over.aborted; kills++) {
      await pause(random.between(...LIFE_MS));
      await nats.down("SIGKILL");
      await pause(random.between(0, AWAY_MS_MAX));
      await nats.up();
      process.stdout.write(`faults: NATS was killed ${kills + 1} times\n`);
    }
  };
  await inArena(
    async (arena) => {
      const counts = { ...ON_SERVER, ...ON_OTHERS };
      const round = { seed, durationMs: 60_000, runs: 150, workers: 5, counts, termMs: STEPFLOW_TERM_MS, beside: killNats };
      const { final } = await playRound(arena, round);
      expect(final.runs).toHaveLength(150);
    },
    { wire: stepflowWire(nats.url) },
  );
});
