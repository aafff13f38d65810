// Claim and complete over HTTP: our durable server beside the real server of the protocol, which keeps everything in memory.
import { workflowGraphServer } from "./environment.ts";
import { withFolder } from "./environment.ts";
import { startServer } from "./ours.ts";
import type { PairsAnswer, PairsRequest } from "./pairs-client.ts";
import { measureApart, start } from "./processes.ts";
import type { Cell, Options, Report, Target } from "./report.ts";
import { median, ratioByRound } from "./stats.ts";

// One workflow of 500 jobs is what a large build has; the number of workflows makes the load long enough to measure.
const JOBS = 500;
const FAN_OUTS = { workflows: 20, jobs: 301, connections: 16 } as const;

interface Load {
  readonly label: string;
  readonly connections: number;
  readonly workflows: number;
  readonly jobs: number;
  readonly warmUpPairs: number;
  readonly shape: "independent" | "fan-out";
}

interface Round {
  readonly load: string;
  readonly ours: PairsAnswer;
  readonly reference: PairsAnswer;
}

const RATE: Record<string, { readonly bound: number; readonly aim: number }> = { "16": { bound: 0.4, aim: 0.6 }, "100": { bound: 0.6, aim: 0.8 } };
const COST: Record<string, { readonly bound: number }> = { "16": { bound: 2.3 }, "100": { bound: 1.8 } };

function loads(quick: boolean): readonly Load[] {
  const independent = (connections: number, workflows: number): Load => {
    const half = Math.ceil(workflows / (quick ? 4 : 1));
    return { label: String(connections), connections, workflows: half, jobs: JOBS, warmUpPairs: Math.min(2_000, (half * JOBS) / 2), shape: "independent" };
  };
  return [
    independent(1, 8),
    independent(16, 16),
    independent(100, 24),
    { label: "20 fan-outs x 300", ...FAN_OUTS, warmUpPairs: 0, shape: "fan-out" },
  ];
}

export async function workflowGraph(options: Options): Promise<Report> {
  const binary = workflowGraphServer();
  const rounds: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    for (const load of loads(options.quick)) {
      const ours = await measureOurs(load);
      const reference = await measureReference(binary, load);
      rounds.push({ load: load.label, ours, reference });
    }
  }
  return summarise(rounds);
}

const measure = (url: string, serverPid: number, load: Load): Promise<PairsAnswer> =>
  measureApart<PairsAnswer>("pairs-client.js", { url, serverPid, ...load } satisfies PairsRequest & { label: string });

function measureOurs(load: Load): Promise<PairsAnswer> {
  return withFolder(async (folder) => {
    const server = await startServer(folder);
    try {
      return await measure(server.url, server.pid, load);
    } finally {
      await server.stop();
    }
  });
}

function measureReference(binary: string, load: Load): Promise<PairsAnswer> {
  return withFolder(async (folder) => {
    // It takes the next port when its own is busy, so the port is read from what it prints.
    const server = start(binary, [], { cwd: folder, env: { PORT: "3001", WORKFLOWS_DIR: folder } });
    try {
      const line = await server.line((text) => /:\d+/.test(text));
      const port = /:(\d+)/.exec(line)?.[1];
      return await measure(`http://127.0.0.1:${port}`, server.pid, load);
    } finally {
      await server.stop();
    }
  });
}

const wholeCost = (side: PairsAnswer): number => side.serverCpuPerPair + side.clientCpuPerPair;

function summarise(rounds: readonly Round[]): Report {
  const rows: Cell[][] = [];
  const ratios: Cell[][] = [];
  const targets: Target[] = [];
  for (const label of new Set(rounds.map((round) => round.load))) {
    const own = rounds.filter((round) => round.load === label);
    rows.push(row(label, "ours", own.map((r) => r.ours)));
    rows.push(row(label, "reference", own.map((r) => r.reference)));
    const by = (pick: (side: PairsAnswer) => number) => ratioByRound(own.map((r) => pick(r.ours)), own.map((r) => pick(r.reference)));
    const rate = by((side) => side.perSecond);
    const cost = by(wholeCost);
    const range = `${rate.lowest.toFixed(2)}-${rate.highest.toFixed(2)}`;
    ratios.push([label, rate.median, range, cost.median, by((side) => side.serverCpuPerPair).median, by((side) => side.clientCpuPerPair).median]);
    const wantedRate = RATE[label];
    const wantedCost = COST[label];
    if (wantedRate) targets.push({ what: `pairs a second at ${label} connections`, value: rate.median, wanted: "at least", ...wantedRate });
    if (wantedCost) targets.push({ what: `server and client CPU a pair at ${label} connections`, value: cost.median, wanted: "at most", ...wantedCost });
  }
  const columns = ["connections  side", "pairs/s", "p50 ms", "p99 ms", "server us/pair", "client us/pair", "jobs lost, all rounds"];
  const tables = [
    { title: "Medians over rounds; a pair is one claim and one complete", columns, rows },
    { title: "Ratios, ours to the reference, medians of the ratios of each round", columns: ["connections", "rate", "range", "CPU", "server CPU", "client CPU"], rows: ratios },
  ];
  return { tables, targets, violations: rounds.flatMap(violations), rounds };
}

function row(label: string, name: string, side: readonly PairsAnswer[]): Cell[] {
  const of = (pick: (answer: PairsAnswer) => number) => median(side.map(pick));
  const lost = side.reduce((sum, answer) => sum + answer.lost, 0);
  return [`${label}  ${name}`, of((a) => a.perSecond), of((a) => a.pairP50), of((a) => a.pairP99), of((a) => a.serverCpuPerPair), of((a) => a.clientCpuPerPair), lost];
}

/** Only ours can violate; what the reference loses is reported, not judged. */
function violations({ load, ours }: Round): string[] {
  if (ours.lost + ours.repeated + ours.refused === 0) return [];
  return [`ours at ${load}: ${ours.lost} lost, ${ours.repeated} handed out twice, ${ours.refused} refused`];
}
