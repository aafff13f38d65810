// The short form of the fault test over NATS, for every run of the tests. `npm run faults` runs the long form.
import { expect, it } from "vitest";
import { natsMissing, TestNats } from "../support/nats.ts";
import { faultSeed } from "./arena.ts";
import { playPool } from "./stepflow-pool.ts";

/** It takes about twenty seconds. A busy machine may need several times as long to start all processes. */
const ROUND_MS_MAX = 180_000;

it(
  "[S-QUEUE-21] two servers on one stream keep every promise to their runs while they, their workers and NATS are killed",
  async (context) => {
    if (natsMissing) return context.skip(`needs ${natsMissing}`);
    const verdicts = await playPool(await TestNats.start(), {
      seed: faultSeed(),
      durationMs: 5_000,
      runs: 12,
      workers: 3,
      onServers: { "kill-server": 1, "cancel-run": 1 },
      onWorkers: { "kill-worker": 1, "stop-worker": 1, "silence-link": 1 },
      natsLifeMs: [1_500, 3_000],
    });
    for (const { final } of verdicts) expect(final.runs).toHaveLength(12);
  },
  ROUND_MS_MAX,
);
