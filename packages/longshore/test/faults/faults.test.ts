// The short form of the fault test, for every run of the tests. `npm run faults` runs the long form.
import { expect, it } from "vitest";
import { faultSeed, inArena } from "./arena.ts";
import { playRound } from "./round.ts";

/** It takes about fifteen seconds. A busy machine may need several times as long to start all processes. */
const ROUND_MS_MAX = 180_000;

it(
  "no promise is broken while the server and its workers are killed, stopped, disconnected and restarted",
  async () => {
    const seed = faultSeed();
    await inArena(async (arena) => {
      const onServer = { "kill-server": 2, "end-server": 1, "stop-server": 1 };
      const onOthers = { "kill-worker": 3, "stop-worker": 1, "silence-link": 1, "cut-link": 2, "cancel-run": 6 };
      const counts = { ...onServer, ...onOthers };
      const { final } = await playRound(arena, { seed, durationMs: 8000, runs: 50, workers: 3, counts });
      expect(final.runs).toHaveLength(50);
    });
  },
  ROUND_MS_MAX,
);
