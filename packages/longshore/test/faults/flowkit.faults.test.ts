// Long rounds of the fault test on FlowKit: ten workers, the coordinator and the broker are killed at random.
import { expect, it } from "vitest";
import { javaMissing } from "../support/java-service.ts";
import { faultSeed } from "./arena.ts";
import { playFlowkitRound } from "./flowkit-round.ts";

const COUNTS = { "kill-server": 5, "end-server": 2, "stop-server": 1, "kill-worker": 20, "stop-worker": 5 };

it.each(["own", "mongo"] as const)("no batch is lost and none counts twice in a long round, artifacts in %s", async (store) => {
  if (javaMissing) throw new Error(`needs ${javaMissing}`);
  const shape = { batches: 40, ms: 10 };
  const round = { seed: faultSeed(), durationMs: 90_000, graphs: 40, workers: 10, shape, store, counts: COUNTS };
  const verdict = await playFlowkitRound({ ...round, brokerLifeMs: [8_000, 25_000] });
  expect(verdict.graphs).toBe(40);
});
