// Does a task cost the same in a file full of history, and a step the same late in a long run? Embedded and over HTTP.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { LoopResult } from "./closed-loop.ts";
import { withFolder } from "./environment.ts";
import type { GrowthRequest, Span, StepCost, StepsAnswer } from "./growth-side.ts";
import { startServer } from "./ours.ts";
import type { PairsAnswer, PairsRequest } from "./pairs-client.ts";
import { measureApart } from "./processes.ts";
import type { Cell, Options, Report, Target } from "./report.ts";
import { median, type Ratio, ratioByRound } from "./stats.ts";

const EMBEDDED_AT_MOST = 1.1;
const HTTP_AT_MOST = 1.2;
const TASK_CONCURRENCY = 10;
const HTTP_CONNECTIONS = 16;

interface Size {
  readonly history: number;
  readonly warmUpSeconds: number;
  readonly seconds: number;
  readonly workflows: number;
  readonly warmUpSteps: number;
  readonly steps: number;
  readonly spans: readonly [Span, Span];
}

/** A span of a thousand steps, because one step is too short to measure. */
const FULL: Size = {
  history: 200_000,
  warmUpSeconds: 1,
  seconds: 3,
  workflows: 16,
  warmUpSteps: 10_001,
  steps: 10_001,
  spans: [
    { from: 10, to: 1_010 },
    { from: 9_000, to: 10_000 },
  ],
};
const QUICK: Size = {
  history: 5_000,
  warmUpSeconds: 0.3,
  seconds: 0.7,
  workflows: 4,
  warmUpSteps: 1_001,
  steps: 1_001,
  spans: [
    { from: 10, to: 210 },
    { from: 800, to: 1_000 },
  ],
};

interface Round {
  readonly tasks: { readonly empty: LoopResult; readonly full: LoopResult };
  readonly pairs: { readonly empty: PairsAnswer; readonly full: PairsAnswer };
  readonly steps: StepsAnswer;
  readonly chain: { readonly spans: readonly StepCost[]; readonly lost: number; readonly repeated: number };
}

export function growth(options: Options): Promise<Report> {
  const size = options.quick ? QUICK : FULL;
  return withFolder(async (root) => {
    const full = await folder(root, "full");
    const { seconds } = await measureApart<{ seconds: number }>("growth-side.js", {
      kind: "fill",
      folder: full,
      runs: size.history,
    } satisfies GrowthRequest);
    const rounds: Round[] = [];
    for (let round = 0; round < options.rounds; round++) rounds.push(await oneRound(root, full, round, size));
    return summarise(rounds, size, seconds);
  });
}

async function folder(root: string, name: string): Promise<string> {
  const path = join(root, name);
  await mkdir(path);
  return path;
}

async function oneRound(root: string, full: string, round: number, size: Size): Promise<Round> {
  const fresh = (name: string) => folder(root, `${name}-${round}`);
  const ask = <T>(request: GrowthRequest) => measureApart<T>("growth-side.js", request);
  const tasks = (path: string) =>
    ask<LoopResult>({
      kind: "tasks",
      folder: path,
      concurrency: TASK_CONCURRENCY,
      warmUpSeconds: size.warmUpSeconds,
      seconds: size.seconds,
    });
  const emptyTasks = await tasks(await fresh("tasks"));
  const fullTasks = await tasks(full);
  const emptyPairs = await pairs(await fresh("pairs"), size);
  const fullPairs = await pairs(full, size);
  const steps = await ask<StepsAnswer>({
    kind: "steps",
    folder: await fresh("steps"),
    warmUpSteps: size.warmUpSteps,
    steps: size.steps,
    spans: size.spans,
  });
  const chain = await chainOverHttp(await fresh("chain"), size);
  return { tasks: { empty: emptyTasks, full: fullTasks }, pairs: { empty: emptyPairs, full: fullPairs }, steps, chain };
}

async function overHttp(path: string, load: Omit<PairsRequest, "url" | "serverPid" | "client">): Promise<PairsAnswer> {
  const server = await startServer(path);
  try {
    return await measureApart<PairsAnswer>("pairs-client.js", { url: server.url, serverPid: server.pid, client: "undici", ...load });
  } finally {
    await server.stop();
  }
}

const pairs = (path: string, { workflows }: Size): Promise<PairsAnswer> =>
  overHttp(path, { connections: HTTP_CONNECTIONS, workflows, jobs: 500, warmUpPairs: (workflows * 500) / 4, shape: "independent" });

async function chainOverHttp(path: string, size: Size): Promise<Round["chain"]> {
  const readCpuAt = size.spans.flatMap(({ from, to }) => [from, to]);
  const answer = await overHttp(path, {
    connections: 1,
    workflows: 1,
    jobs: size.steps,
    warmUpPairs: size.warmUpSteps,
    shape: "chain",
    readCpuAt,
  });
  const { each = [], serverCpuAt = {} } = answer;
  const spans = size.spans.map(({ from, to }) => ({
    milliseconds: median(each.slice(from, to)),
    cpu: ((serverCpuAt[to] as number) - (serverCpuAt[from] as number)) / (to - from),
  }));
  return { spans, lost: answer.lost, repeated: answer.repeated };
}

interface Comparison {
  readonly label: string;
  readonly small: (round: Round) => StepCost;
  readonly large: (round: Round) => StepCost;
  readonly bound: number;
}

const taskCost = (result: LoopResult): StepCost => ({ milliseconds: 1000 / result.perSecond, cpu: result.cpuPerTask });
const pairCost = (answer: PairsAnswer): StepCost => ({ milliseconds: 1000 / answer.perSecond, cpu: answer.serverCpuPerPair });
const spanCost = (spans: readonly StepCost[], index: number): StepCost => spans[index] ?? { milliseconds: Number.NaN, cpu: Number.NaN };

function comparisons({ history, steps }: Size): readonly Comparison[] {
  const runs = history.toLocaleString("en-US");
  const last = (steps - 1).toLocaleString("en-US");
  return [
    {
      label: `task, embedded: 0 and ${runs} finished runs`,
      small: (r) => taskCost(r.tasks.empty),
      large: (r) => taskCost(r.tasks.full),
      bound: EMBEDDED_AT_MOST,
    },
    {
      label: `task, HTTP: 0 and ${runs} finished runs`,
      small: (r) => pairCost(r.pairs.empty),
      large: (r) => pairCost(r.pairs.full),
      bound: HTTP_AT_MOST,
    },
    {
      label: `step, embedded: 10th and ${last}th`,
      small: (r) => spanCost(r.steps.spans, 0),
      large: (r) => spanCost(r.steps.spans, 1),
      bound: EMBEDDED_AT_MOST,
    },
    {
      label: `step, HTTP: 10th and ${last}th`,
      small: (r) => spanCost(r.chain.spans, 0),
      large: (r) => spanCost(r.chain.spans, 1),
      bound: HTTP_AT_MOST,
    },
  ];
}

function summarise(rounds: readonly Round[], size: Size, fillSeconds: number): Report {
  const rows: Cell[][] = [];
  const targets: Target[] = [];
  for (const { label, small, large, bound } of comparisons(size)) {
    const by = (pick: keyof StepCost): { small: number; large: number; ratio: Ratio } => {
      const smalls = rounds.map((round) => small(round)[pick]);
      const larges = rounds.map((round) => large(round)[pick]);
      return { small: median(smalls), large: median(larges), ratio: ratioByRound(larges, smalls) };
    };
    const cpu = by("cpu");
    const wall = by("milliseconds");
    const range = `${cpu.ratio.lowest.toFixed(2)}-${cpu.ratio.highest.toFixed(2)}`;
    rows.push([label, cpu.small, cpu.large, cpu.ratio.median, range, wall.small * 1000, wall.large * 1000, wall.ratio.median]);
    targets.push({ what: `CPU cost of a ${label}`, value: cpu.ratio.median, wanted: "at most", bound });
  }
  const columns = ["what grows", "CPU us small", "CPU us large", "ratio", "range", "wall us small", "wall us large", "ratio"];
  const title = `Cost of one task or step, medians over rounds (the file was filled in ${fillSeconds.toFixed(0)} s)`;
  return {
    tables: [{ title, columns, rows }],
    targets,
    violations: rounds.flatMap(violations),
    checked: rounds.reduce((sum, round) => sum + counted(round, size), 0),
    rounds,
  };
}

const counted = ({ tasks, pairs }: Round, { steps }: Size): number =>
  tasks.empty.tasks + tasks.full.tasks + pairs.empty.pairs + pairs.full.pairs + 2 * steps;

function violations(round: Round): string[] {
  const checked = {
    "tasks, empty file": round.tasks.empty,
    "tasks, full file": round.tasks.full,
    "HTTP, empty file": round.pairs.empty,
    "HTTP, full file": round.pairs.full,
    steps: round.steps,
    "steps over HTTP": round.chain,
  };
  return Object.entries(checked).flatMap(([label, { lost, repeated }]) =>
    lost + repeated > 0 ? [`${label}: ${lost} lost, ${repeated} repeated`] : [],
  );
}
