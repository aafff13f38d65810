// One round of chaos: runs are started at an even pace while processes die, sleep and come back; then everything must end, and be right.
import { setTimeout as pause } from "node:timers/promises";
import type { Arena, Verdict } from "./arena.ts";
import { type ChaosOptions, planFaults, playFaults } from "./chaos.ts";
import type { Happening } from "./history.ts";
import { type Random, seededRandom } from "./random.ts";
import { chain, diamond, fanOut, fanOutAndIn } from "./shapes.ts";

interface RoundOptions extends Pick<ChaosOptions, "seed" | "durationMs" | "counts"> {
  runs: number;
  workers: number;
}

const TTL_SECS = 1;
const SLOTS = 4;
/** Several terms after the last fault, on a machine that does other things too. */
const END_MS_MAX = 60_000;

export async function playRound(arena: Arena, { seed, durationMs, counts, runs, workers }: RoundOptions): Promise<Verdict> {
  const habits = { slots: SLOTS, ttlSecs: TTL_SECS, waitSecs: 1, workMs: [2, 250] as [number, number], failRate: 0.1, dozeRate: 0.03 };
  for (let index = 0; index < workers; index++) await arena.addWorker({ ...habits, seed: seed + index }).start();
  const shapes = [chain(4), diamond(), fanOut(6), fanOutAndIn(4)];
  const workflows: string[] = [];
  for (const jobs of shapes) workflows.push(await arena.client.create("faults", jobs));

  const runIds: string[] = [];
  const cancelled = new Set<string>();
  const startAll = async (): Promise<void> => {
    const random = seededRandom(seed);
    for (let index = 0; index < runs; index++) {
      runIds.push(await arena.client.start(random.pick(workflows) ?? ""));
      await pause(durationMs / runs);
    }
  };
  // One of the last few runs, which are most likely to be in the middle of something.
  const cancelOne = async (random: Random): Promise<void> => {
    const runId = random.pick(runIds.slice(-4).filter((id) => !cancelled.has(id)));
    if (!runId) return;
    cancelled.add(runId);
    await arena.client.cancel(runId);
  };
  const faults = planFaults({ seed, durationMs, workers, termMs: TTL_SECS * 1000, counts });
  await Promise.all([startAll(), playFaults(faults, seed, { ...arena, cancelOne })]);
  await arena.client.untilEnded(runIds, END_MS_MAX);
  const verdict = await arena.judge(runIds);
  const unfinished = verdict.final.runs.filter((run) => run.state !== "succeeded" && !cancelled.has(run.id));
  if (unfinished.length > 0)
    throw new Error(`Runs that nobody cancelled did not succeed: ${JSON.stringify(unfinished)}; see ${arena.directory}`);
  process.stdout.write(`faults: ${describeRound(verdict)}\n`);
  return verdict;
}

/** What the round really met, for the reader: a round without a refused report has proved little. */
function describeRound({ final, history }: Verdict): string {
  const count = (test: (entry: Happening) => boolean): number => history.filter(test).length;
  const tasks = final.tasks.length;
  return [
    `${final.runs.length} runs, ${tasks} tasks, ${count((entry) => entry.kind === "claim-got")} holds`,
    `${count((entry) => entry.kind === "process-killed" && entry.name === "server")} kills of the server`,
    `${count((entry) => entry.kind === "process-killed" && entry.name !== "server")} of workers`,
    `${count((entry) => entry.kind === "process-stopped")} stops`,
    `${count((entry) => entry.kind === "cancel-acknowledged")} cancels`,
    `${count((entry) => entry.kind === "report-got" && entry.status === 409)} reports refused`,
    `${count((entry) => entry.kind === "report-unanswered")} unanswered`,
  ].join(", ");
}
