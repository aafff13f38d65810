// The short form of FlowKit's fault test, which is part of every conformance run. `npm run faults` runs the long form.
import { describe, expect, it } from "vitest";
import { faultSeed } from "../../longshore/test/faults/arena.ts";
import { playFlowkitRound } from "../../longshore/test/faults/flowkit-round.ts";

const COUNTS = { "kill-server": 1, "kill-worker": 4, "stop-worker": 1 };

describe("ten workers, our coordinator and the broker, each killed at random,", () => {
  it.each(["own", "mongo"] as const)("lose no batch and count none twice, artifacts in %s", async (store) => {
    const shape = { batches: 20, ms: 10 };
    const round = { seed: faultSeed(), durationMs: 15_000, graphs: 8, workers: 10, shape, store, counts: COUNTS };
    const verdict = await playFlowkitRound({ ...round, brokerLifeMs: [5_000, 9_000] });
    expect(verdict.graphs).toBe(8);
    expect(verdict.batches).toBe(8 * (20 + 40 + 20 + 60));
  });
});
