// Long rounds of the fault test on Stepflow's queues: over gRPC, and over a NATS server that is also killed.
import { expect, it } from "vitest";
import { natsMissing, TestNats } from "../support/nats.ts";
import { faultSeed, inArena } from "./arena.ts";
import { killAgainAndAgain } from "./chaos.ts";
import { playRound } from "./round.ts";
import { playPool } from "./stepflow-pool.ts";
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

/** The shortest and the longest time before NATS is killed. */
const NATS_LIFE_MS: [number, number] = [1_000, 4_000];

it("no promise is broken through NATS in a long round, while NATS dies too", async (context) => {
  if (natsMissing) return context.skip(`needs ${natsMissing}`);
  const seed = faultSeed();
  const nats = await TestNats.start();
  await inArena(
    async (arena) => {
      const counts = { ...ON_SERVER, ...ON_OTHERS };
      const beside = killAgainAndAgain("NATS", nats, seed, NATS_LIFE_MS);
      const round = { seed, durationMs: 60_000, runs: 150, workers: 5, counts, termMs: STEPFLOW_TERM_MS, beside };
      const { final } = await playRound(arena, round);
      expect(final.runs).toHaveLength(150);
    },
    { wire: stepflowWire(nats.url) },
  );
});

it("[S-QUEUE-21] two servers on one stream keep every promise to their runs in a long round", async (context) => {
  if (natsMissing) return context.skip(`needs ${natsMissing}`);
  const verdicts = await playPool(await TestNats.start(), {
    seed: faultSeed(),
    durationMs: 60_000,
    runs: 80,
    workers: 5,
    onServers: { "kill-server": 5, "end-server": 2, "stop-server": 1, "cancel-run": 8 },
    onWorkers: { "kill-worker": 10, "stop-worker": 4, "silence-link": 4, "cut-link": 10 },
    natsLifeMs: NATS_LIFE_MS,
  });
  for (const { final } of verdicts) expect(final.runs).toHaveLength(80);
});
