// One round of chaos. Runs are started at an even rate while processes die, sleep and restart. Then everything must end, with correct
// results.
import { setTimeout as pause } from "node:timers/promises";
import type { Job } from "./api.ts";
import type { Arena, Verdict } from "./arena.ts";
import { type ChaosOptions, type FaultCounts, planFaults, playFaults } from "./chaos.ts";
import type { Happening } from "./history.ts";
import { type Random, seededRandom } from "./random.ts";
import { chain, diamond, fanOut, fanOutAndIn } from "./shapes.ts";

interface RoundOptions extends Pick<ChaosOptions, "seed" | "durationMs"> {
  counts: Partial<FaultCounts>;
  runs: number;
  workers: number;
  /** How long a job takes, at least and at most. */
  workMs?: [number, number];
  shapes?: Job[][];
  /** The term of a hold, where workers cannot choose it. */
  termMs?: number;
  /** Further faults, in addition to the schedule, until the signal aborts. */
  beside?: (over: AbortSignal) => Promise<void>;
}

export const NO_FAULTS: FaultCounts = {
  "kill-server": 0,
  "end-server": 0,
  "stop-server": 0,
  "kill-worker": 0,
  "stop-worker": 0,
  "silence-link": 0,
  "cut-link": 0,
  "cancel-run": 0,
};
/** Long enough for some heartbeats in a term of one second, short enough for many jobs. */
const WORK_MS: [number, number] = [2, 400];

const TTL_SECS = 1;
/** Every third worker. Its leases are still valid when a killed server is back. */
const LONG_TTL_SECS = 4;
const SLOTS = 4;
/** Several terms after the last fault, on a busy machine. */
const END_MS_MAX = 60_000;

export async function playRound(arena: Arena, options: RoundOptions): Promise<Verdict> {
  const { seed, durationMs, runs, workers, workMs = WORK_MS, shapes = [chain(4), diamond(), fanOut(6), fanOutAndIn(4)] } = options;
  const rudeness = { failRate: 0.1, dozeRate: 0.03, hangUpRate: 0.05, repeatRate: 0.1, logRate: 0.3 };
  for (let index = 0; index < workers; index++) {
    // Every other worker reaches the server over a network that fails.
    const link = index % 2 === 1 ? await arena.addLink() : undefined;
    const habits = {
      slots: SLOTS,
      ttlSecs: index % 3 === 2 ? LONG_TTL_SECS : TTL_SECS,
      waitSecs: 1,
      workMs,
      ...rudeness,
      seed: seed + index,
    };
    await arena.addWorker(habits, link).start();
  }
  const workflows: string[] = [];
  for (const jobs of shapes) workflows.push(await arena.client.create("faults", jobs));

  const runIds: string[] = [];
  const cancelled = new Set<string>();
  const random = seededRandom(seed);
  const startOne = async (): Promise<number> => runIds.push(await arena.client.start(random.pick(workflows) ?? ""));
  const startOthers = async (): Promise<void> => {
    while (runIds.length < runs) {
      await pause(durationMs / runs);
      await startOne();
    }
  };
  // One of the last few runs, which are most likely to be in the middle of something.
  const cancelOne = async (by: Random): Promise<void> => {
    const runId = by.pick(runIds.slice(-4).filter((id) => !cancelled.has(id)));
    if (!runId) return;
    cancelled.add(runId);
    await arena.client.cancel(runId);
  };
  const counts = { ...NO_FAULTS, ...options.counts };
  const faults = planFaults({ seed, durationMs, workers, links: arena.links.length, termMs: options.termMs ?? TTL_SECS * 1000, counts });
  const note = (kind: "link-silent" | "link-restored" | "link-cut", name: string): void => arena.note({ kind, name });
  // Before a run is acknowledged, there is no promise that a fault could break.
  await startOne();
  const over = new AbortController();
  const beside = options.beside?.(over.signal);
  await Promise.all([startOthers(), playFaults(faults, seed, { ...arena, cancelOne, note })]).finally(() => over.abort());
  await beside;
  await arena.client.untilEnded(runIds, END_MS_MAX);
  const verdict = await arena.judge(runIds);
  const unfinished = verdict.final.runs.filter((run) => run.state !== "succeeded" && !cancelled.has(run.id));
  if (unfinished.length > 0)
    throw new Error(`Runs that nobody cancelled did not succeed: ${JSON.stringify(unfinished)}; see ${arena.directory}`);
  process.stdout.write(`faults: ${describeRound(verdict)}\n`);
  return verdict;
}

/** The effects of the round, for the reader: a round in which no report was refused has shown little. */
function describeRound({ final, history }: Verdict): string {
  const count = (test: (entry: Happening) => boolean): number => history.filter(test).length;
  const ofServer = (kind: Happening["kind"]): number => count((entry) => entry.kind === kind && "name" in entry && entry.name === "server");
  const ofWorkers = (kind: Happening["kind"]): number =>
    count((entry) => entry.kind === kind && "name" in entry && entry.name !== "server");
  return [
    `${final.runs.length} runs, ${final.tasks.length} tasks, ${count((entry) => entry.kind === "claim-got")} holds`,
    `${ofServer("process-killed")} kills, ${ofServer("process-ended")} ends and ${ofServer("process-stopped")} stops of the server`,
    `${ofWorkers("process-killed")} kills and ${ofWorkers("process-stopped")} stops of workers`,
    `${ofWorkers("link-silent")} silences and ${ofWorkers("link-cut")} cuts of links`,
    `${count((entry) => entry.kind === "disk-full")} full disks`,
    `${count((entry) => entry.kind === "cancel-acknowledged")} cancels`,
    `${count((entry) => entry.kind === "log-got" && entry.status === 200)} log lines`,
    `${count((entry) => entry.kind === "report-got" && entry.status === 409)} reports refused`,
    `${count((entry) => entry.kind === "report-unanswered")} unanswered`,
  ].join(", ");
}
