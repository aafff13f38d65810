// Two servers with separate stores, and one NATS stream and one pool of workers for both. Everything may be killed. Each server is checked
// with its own history.
import type { TestNats } from "../support/nats.ts";
import { inArena, type Verdict } from "./arena.ts";
import { type FaultCounts, killAgainAndAgain } from "./chaos.ts";
import { playRound } from "./round.ts";
import { STEPFLOW_TERM_MS, stepflowWire } from "./stepflow-wire.ts";

export interface PoolRound {
  seed: number;
  durationMs: number;
  /** On each server. */
  runs: number;
  workers: number;
  /** What happens to each server. */
  onServers: Partial<FaultCounts>;
  /** What happens to the workers, and to their ways to the first server. */
  onWorkers: Partial<FaultCounts>;
  /** How long NATS lives, at least and at most, before it is killed. */
  natsLifeMs: [number, number];
}

/** Returns the outcomes of the runs of each server. */
export async function playPool(nats: TestNats, round: PoolRound): Promise<[Verdict, Verdict]> {
  const { seed, durationMs, runs, workers, onServers, onWorkers, natsLifeMs } = round;
  const common = { durationMs, runs, termMs: STEPFLOW_TERM_MS };
  let verdicts: [Verdict, Verdict] | undefined;
  await inArena(
    (second) =>
      inArena(
        async (first) => {
          const beside = killAgainAndAgain("NATS", nats, seed, natsLifeMs);
          verdicts = await Promise.all([
            playRound(first, { ...common, seed, workers, counts: { ...onServers, ...onWorkers }, beside }),
            playRound(second, { ...common, seed: seed + 1, workers: 0, counts: onServers }),
          ]);
        },
        { wire: stepflowWire(nats.url, [second]) },
      ),
    { wire: stepflowWire(nats.url) },
  );
  return verdicts as [Verdict, Verdict];
}
