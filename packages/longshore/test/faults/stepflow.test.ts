// The short form of the fault test on Stepflow's queues, for every run of the tests. `npm run faults` runs the long form.
import { expect, it } from "vitest";
import { faultSeed, inArena } from "./arena.ts";
import { playRound } from "./round.ts";
import { STEPFLOW_TERM_MS, stepflowWire } from "./stepflow-wire.ts";

/** It takes about twenty seconds. A busy machine may need several times as long to start all processes. */
const ROUND_MS_MAX = 180_000;

it(
  "no promise is broken while Stepflow's server and workers are killed, stopped, disconnected and restarted",
  async () => {
    const seed = faultSeed();
    await inArena(
      async (arena) => {
        const onServer = { "kill-server": 1, "end-server": 1 };
        const onOthers = { "kill-worker": 2, "stop-worker": 1, "silence-link": 1, "cut-link": 2, "cancel-run": 3 };
        const counts = { ...onServer, ...onOthers };
        const { final } = await playRound(arena, { seed, durationMs: 5_000, runs: 20, workers: 3, counts, termMs: STEPFLOW_TERM_MS });
        expect(final.runs).toHaveLength(20);
      },
      { wire: stepflowWire() },
    );
  },
  ROUND_MS_MAX,
);
