// Claim and complete over HTTP: our durable server beside the real server of the protocol, which keeps everything in memory.
import { fileURLToPath } from "node:url";
import { withFolder, workflowGraphServer } from "./environment.ts";
import type { ClientName } from "./http-connection.ts";
import { startServer } from "./ours.ts";
import type { PairsAnswer, PairsRequest } from "./pairs-client.ts";
import { measureApart, start } from "./processes.ts";
import type { Cell, Options, Report, Target } from "./report.ts";
import { median, type Ratio, ratioByRound } from "./stats.ts";

// One workflow of 500 jobs is what a large build has; the number of workflows makes the load long enough to measure.
const JOBS = 500;
const BARE_SERVER = fileURLToPath(new URL("./bare-http.js", import.meta.url));
const FAN_OUT_LABEL = "20 fan-outs x 300";
const FAN_OUTS = { workflows: 20, jobs: 301, connections: 16 } as const;

interface Load {
  readonly label: string;
  readonly connections: number;
  readonly workflows: number;
  readonly jobs: number;
  readonly warmUpPairs: number;
  readonly shape: "independent" | "fan-out";
  readonly client: ClientName;
}

interface Round {
  readonly load: string;
  readonly ours: PairsAnswer;
  readonly reference: PairsAnswer;
  /** Not measured for the fan-outs, where nothing but losses is compared. */
  readonly bare?: PairsAnswer;
}

const WANTED: Record<
  string,
  { readonly rate: { readonly bound: number; readonly aim: number }; readonly cost: { readonly bound: number } }
> = {
  "16": { rate: { bound: 0.4, aim: 0.6 }, cost: { bound: 2.3 } },
  "100": { rate: { bound: 0.6, aim: 0.8 }, cost: { bound: 1.8 } },
};

function loads({ quick, client }: Options): readonly Load[] {
  const independent = (connections: number, workflows: number): Load => {
    const half = Math.ceil(workflows / (quick ? 4 : 1));
    return {
      label: String(connections),
      connections,
      workflows: half,
      jobs: JOBS,
      warmUpPairs: Math.min(2_000, (half * JOBS) / 2),
      shape: "independent",
      client,
    };
  };
  return [
    independent(1, 8),
    independent(16, 24),
    independent(100, 44),
    { label: FAN_OUT_LABEL, ...FAN_OUTS, warmUpPairs: 0, shape: "fan-out", client },
  ];
}

export async function workflowGraph(options: Options): Promise<Report> {
  const binary = workflowGraphServer();
  const rounds: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    for (const load of loads(options)) {
      const ours = await measureOurs(load);
      const reference = await measureProcess(binary, [], load);
      const bare = load.shape === "independent" ? { bare: await measureProcess(process.execPath, [BARE_SERVER], load) } : {};
      rounds.push({ load: load.label, ours, reference, ...bare });
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

function measureProcess(file: string, args: readonly string[], load: Load): Promise<PairsAnswer> {
  return withFolder(async (folder) => {
    // Both print their address: the reference takes another port when the given one is busy.
    const server = start(file, args, { cwd: folder, env: { PORT: "3001", WORKFLOWS_DIR: folder } });
    try {
      const port = /:(\d+)/.exec(await server.line((text) => /:\d+/.test(text)))?.[1];
      return await measure(`http://127.0.0.1:${port}`, server.pid, load);
    } finally {
      await server.stop();
    }
  });
}

function summarise(rounds: readonly Round[]): Report {
  const rows: Cell[][] = [];
  const ratios: Cell[][] = [];
  const targets: Target[] = [];
  for (const label of new Set(rounds.map((round) => round.load))) {
    const own = rounds.filter((round) => round.load === label);
    for (const side of ["ours", "reference"] as const) {
      const answers = own.map((round) => round[side]);
      rows.push(row(`${label}  ${side}`, answers));
    }
    const bare = own.flatMap((round) => round.bare ?? []);
    if (bare.length > 0) rows.push(row(`${label}  bare node:http`, bare));
    // The reference does not end the fan-outs, so only losses can be compared there.
    if (label === FAN_OUT_LABEL) continue;
    const compared = compare(own);
    const range = `${compared.rate.lowest.toFixed(2)}-${compared.rate.highest.toFixed(2)}`;
    ratios.push([
      label,
      compared.rate.median,
      range,
      compared.cost.median,
      compared.serverCost.median,
      compared.clientCost.median,
      compared.bareRate.median,
    ]);
    targets.push(...wanted(label, compared.rate.median, compared.cost.median));
  }
  const columns = ["connections  side", "pairs/s", "p50 ms", "p99 ms", "server us/pair", "client us/pair", "finished", "lost"];
  const ratioColumns = ["connections", "rate", "range", "CPU", "server CPU", "client CPU", "rate of bare node:http"];
  const tables = [
    { title: "Medians over rounds, jobs summed over rounds; a pair is one claim and one complete", columns, rows },
    { title: "Ratios, ours to the reference, medians of the ratios of each round", columns: ratioColumns, rows: ratios },
  ];
  const checked = rounds.reduce((sum, { ours, reference }) => sum + ours.pairs + reference.pairs, 0);
  return { tables, targets, violations: rounds.flatMap(violations), checked, rounds };
}

function compare(rounds: readonly Round[]): Record<"rate" | "cost" | "serverCost" | "clientCost" | "bareRate", Ratio> {
  const by = (pick: (side: PairsAnswer) => number): Ratio => {
    const ours = rounds.map((round) => pick(round.ours));
    const reference = rounds.map((round) => pick(round.reference));
    return ratioByRound(ours, reference);
  };
  return {
    rate: by((side) => side.perSecond),
    cost: by((side) => side.serverCpuPerPair + side.clientCpuPerPair),
    serverCost: by((side) => side.serverCpuPerPair),
    clientCost: by((side) => side.clientCpuPerPair),
    bareRate: ratioByRound(
      rounds.map((round) => round.bare?.perSecond ?? Number.NaN),
      rounds.map((round) => round.reference.perSecond),
    ),
  };
}

function wanted(label: string, rate: number, cost: number): Target[] {
  const bounds = WANTED[label];
  if (!bounds) return [];
  return [
    { what: `pairs a second at ${label} connections`, value: rate, wanted: "at least", ...bounds.rate },
    { what: `server and client CPU a pair at ${label} connections`, value: cost, wanted: "at most", ...bounds.cost },
  ];
}

function row(label: string, side: readonly PairsAnswer[]): Cell[] {
  const of = (pick: (answer: PairsAnswer) => number) => median(side.map(pick));
  const sum = (pick: (answer: PairsAnswer) => number) => side.reduce((total, answer) => total + pick(answer), 0);
  const speed = [
    of((a) => a.perSecond),
    of((a) => a.pairP50),
    of((a) => a.pairP99),
    of((a) => a.serverCpuPerPair),
    of((a) => a.clientCpuPerPair),
  ];
  return [label, ...speed, sum((a) => a.finished), sum((a) => a.lost)];
}

/** Only our losses fail the benchmark; those of the reference are reported. */
function violations({ load, ours }: Round): string[] {
  if (ours.lost + ours.repeated + ours.refused === 0) return [];
  return [`ours at ${load}: ${ours.lost} lost, ${ours.repeated} handed out twice, ${ours.refused} refused`];
}
