// Tests the fault test's own harness on a model server in a separate process, with the same kills, stops and cancels as for the real server.
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { inArena } from "./arena.ts";
import { playRound } from "./round.ts";

const model = (kind: "durable" | "volatile"): { command: string[] } => ({
  command: [process.execPath, "--import", "tsx", fileURLToPath(new URL("./model-process.ts", import.meta.url)), kind],
});

/** Two rounds of a few seconds. A busy machine may need several times as long to start their processes. */
const ROUND_MS_MAX = 180_000;

it(
  "the harness reports no fault of a model that stores everything",
  async () => {
    await inArena(async (arena) => {
      const counts = { "kill-server": 1, "kill-worker": 1, "stop-worker": 1, "cancel-run": 2 };
      const { final, history } = await playRound(arena, { seed: 7, durationMs: 3000, runs: 12, workers: 2, counts });
      expect(final.runs).toHaveLength(12);
      expect(history.filter((entry) => entry.kind === "process-killed")).toHaveLength(2);
    }, model("durable"));
  },
  ROUND_MS_MAX,
);

it(
  "the harness detects a model that forgets its runs when it is killed",
  async () => {
    await inArena(async (arena) => {
      const counts = { "kill-server": 1, "kill-worker": 0, "stop-worker": 0, "cancel-run": 0 };
      const round = playRound(arena, { seed: 7, durationMs: 2000, runs: 8, workers: 1, counts });
      await expect(round).rejects.toThrow("acknowledged-run-kept");
    }, model("volatile"));
  },
  ROUND_MS_MAX,
);
