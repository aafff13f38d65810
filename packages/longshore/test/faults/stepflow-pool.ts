// Two servers with stores of their own, one stream of NATS and one pool of workers between them: everything may be killed, and each server
// is judged by a history of its own.
import { setTimeout as pause } from "node:timers/promises";
import type { TestNats } from "../support/nats.ts";
import { inArena, type Verdict } from "./arena.ts";
import type { FaultCounts } from "./chaos.ts";
import { seededRandom } from "./random.ts";
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

/** NATS stays away for a moment. */
const AWAY_MS_MAX = 500;

/** Answers what became of the runs of each server. */
export async function playPool(nats: TestNats, round: PoolRound): Promise<[Verdict, Verdict]> {
  const { seed, durationMs, runs, workers, onServers, onWorkers, natsLifeMs } = round;
  const common = { durationMs, runs, termMs: STEPFLOW_TERM_MS };
  let verdicts: [Verdict, Verdict] | undefined;
  await inArena(
    (second) =>
      inArena(
        async (first) => {
          const beside = killAgainAndAgain(nats, seed, natsLifeMs);
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

/** NATS is killed and started again until the signal aborts, and is there afterwards. */
export function killAgainAndAgain(nats: TestNats, seed: number, lifeMs: [number, number]): (over: AbortSignal) => Promise<void> {
  return async (over) => {
    const random = seededRandom(seed);
    let kills = 0;
    while (!over.aborted) {
      await pause(random.between(...lifeMs));
      await nats.down("SIGKILL");
      await pause(random.between(0, AWAY_MS_MAX));
      await nats.up();
      kills++;
    }
    process.stdout.write(`faults: NATS was killed ${kills} times\n`);
  };
}
