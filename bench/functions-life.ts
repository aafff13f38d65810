// Long lives of durable functions: whether step 10,000 costs what step 10 does, and what 100,000 sleeping runs cost a server.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "longshore/client";
import { withFolder } from "./environment.ts";
import type { LifeRequest, SleepersAnswer, StepsAnswer } from "./functions-life-side.ts";
import { startServer } from "./ours.ts";
import { measureApart, residentBytes } from "./processes.ts";
import type { Cell, Report } from "./report.ts";
import { median, ratioByRound } from "./stats.ts";

/** Spans of steps that are long enough to measure: from the 10th on, and up to the 10,000th. */
const FULL = {
  runs: 100_000,
  warmUpSteps: 10_001,
  steps: 10_001,
  spans: [
    { from: 10, to: 1_010 },
    { from: 9_000, to: 10_000 },
  ],
} as const;
const QUICK = {
  runs: 2_000,
  warmUpSteps: 1_001,
  steps: 1_001,
  spans: [
    { from: 10, to: 210 },
    { from: 800, to: 1_000 },
  ],
} as const;
const STEP_AT_MOST = 1.2;
/** Until the work of starting is over. */
const SETTLE_MS = 3_000;

const ask = <T>(request: LifeRequest) => measureApart<T>("functions-life-side.js", request);

export function growthRound(quick: boolean): Promise<StepsAnswer> {
  const { warmUpSteps, steps, spans } = quick ? QUICK : FULL;
  return withFolder((folder) => ask<StepsAnswer>({ kind: "steps", folder, warmUpSteps, steps, spans }));
}

export function growthReport(rounds: readonly StepsAnswer[]): Report {
  const by = (span: number, pick: "cpu" | "milliseconds") => rounds.map(({ spans }) => spans[span]?.[pick] ?? Number.NaN);
  const cpu = ratioByRound(by(1, "cpu"), by(0, "cpu"));
  const wall = ratioByRound(by(1, "milliseconds"), by(0, "milliseconds"));
  const row = (label: string, span: number): Cell[] => [label, median(by(span, "cpu")), median(by(span, "milliseconds")) * 1000];
  const last: Cell[] = ["ratio, median of the rounds", cpu.median, wall.median];
  return {
    tables: [
      {
        title: "Cost of one step of a durable function in one process",
        columns: ["steps", "CPU us", "wall us"],
        rows: [row("from the 10th on", 0), row("the last ones", 1), last],
      },
    ],
    targets: [{ what: "CPU cost of a late step", value: cpu.median, wanted: "at most", bound: STEP_AT_MOST }],
    violations: rounds.flatMap(({ lost, repeated }) => (lost + repeated > 0 ? [`steps: ${lost} lost, ${repeated} repeated`] : [])),
    checked: rounds.length * FULL.steps,
    rounds,
  };
}

interface Restart {
  readonly healthyMs: number;
  readonly residentMib: number;
}

export interface SleepingRound {
  readonly filled: SleepersAnswer;
  readonly empty: Restart;
  readonly full: Restart;
  readonly listed: number;
}

export function sleepingRound(quick: boolean): Promise<SleepingRound> {
  const { runs } = quick ? QUICK : FULL;
  return withFolder(async (root) => {
    const folders = { empty: join(root, "empty"), full: join(root, "full") };
    for (const folder of Object.values(folders)) await mkdir(folder);
    const filled = await ask<SleepersAnswer>({ kind: "sleepers", folder: folders.full, runs });
    const empty = await restart(folders.empty);
    const { listed, ...full } = await restart(folders.full);
    return { filled, empty, full, listed };
  });
}

/** From the start of the process until it has answered a request that reads a run. */
async function restart(folder: string): Promise<Restart & { readonly listed: number }> {
  const before = performance.now();
  const server = await startServer(folder);
  try {
    let listed = 0;
    for await (const _ of connect(server.url).runs({ state: "running" })) if (++listed === 1) break;
    const healthyMs = performance.now() - before;
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
    return { healthyMs, residentMib: residentBytes(server.pid) / 2 ** 20, listed };
  } finally {
    await server.stop();
  }
}

export function sleepingReport(rounds: readonly SleepingRound[], quick: boolean): Report {
  const { runs } = quick ? QUICK : FULL;
  const of = (pick: (round: SleepingRound) => number) => median(rounds.map(pick));
  const rows: Cell[][] = [
    ["server, restarted, ms to its first answer", of((r) => r.empty.healthyMs), of((r) => r.full.healthyMs)],
    ["server, restarted, MiB resident", of((r) => r.empty.residentMib), of((r) => r.full.residentMib)],
    ["server and worker that started them, MiB resident", "-", of((r) => r.filled.residentMib)],
    ["CPU us to start a run until it sleeps", "-", of((r) => r.filled.cpuPerRun)],
  ];
  const short = rounds.filter(({ filled, listed }) => filled.asleep !== runs || listed === 0);
  return {
    tables: [{ title: `${runs.toLocaleString("en-US")} sleeping runs`, columns: ["figure", "no runs", "all asleep"], rows }],
    targets: [],
    violations: short.map(({ filled, listed }) => `${filled.asleep} runs fell asleep, ${listed} listed after the restart`),
    checked: runs * rounds.length,
    rounds,
  };
}
