// The tables and verdicts of the Stepflow benchmark.
import type { Cell, Report, Table, Target } from "./report.ts";
import { median, ratioByRound } from "./stats.ts";
import type { ChainAnswer } from "./stepflow-chain-side.ts";
import type { IdleAnswer } from "./stepflow-idle-side.ts";
import type { LoadAnswer } from "./stepflow-load-side.ts";

export const PROTOCOLS = ["gRPC", "HTTP"] as const;
export type Protocol = (typeof PROTOCOLS)[number];

export interface WorkerCell {
  readonly server: "memory" | "ours";
  readonly protocol: Protocol;
  readonly concurrency: number;
  readonly ours: LoadAnswer;
  readonly sdk: LoadAnswer;
}

export interface ServerCell {
  readonly protocol: Protocol;
  readonly concurrency: number;
  readonly ours: LoadAnswer;
  readonly memory: LoadAnswer;
  readonly sqlite: LoadAnswer;
  /** In memory, with the Python worker. */
  readonly pair: LoadAnswer;
}

export interface Round {
  readonly workers: readonly WorkerCell[];
  readonly servers: readonly ServerCell[];
  readonly idle: { readonly streams: number; readonly ours: IdleAnswer; readonly real: IdleAnswer } | undefined;
  readonly chain: { readonly ours: ChainAnswer; readonly real: ChainAnswer } | undefined;
}

export function summarise(rounds: readonly Round[], steps: number): Report {
  const tables = [workerTable(rounds), serverTable(rounds), idleTable(rounds), chainTable(rounds, steps)];
  return {
    tables: tables.filter(({ rows }) => rows.length > 0),
    targets: [...workerTargets(rounds), ...serverTargets(rounds), ...chainTargets(rounds, steps)],
    violations: rounds.flatMap(violations),
    checked: rounds.flatMap(loads).reduce((sum, { answer }) => sum + answer.runs, 0),
    rounds,
  };
}

/** Loads that are the same in every round, by what distinguishes them. */
function grouped<T>(cells: readonly T[], name: (cell: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const cell of cells) {
    const group = groups.get(name(cell));
    if (group) group.push(cell);
    else groups.set(name(cell), [cell]);
  }
  return groups;
}

const rate = (answer: LoadAnswer): number => answer.perSecond;
const loadName = ({ protocol, concurrency }: { protocol: Protocol; concurrency: number }): string => `${protocol}, ${concurrency} callers`;
const workerName = (cell: WorkerCell): string => `${loadName(cell)}, ${cell.server === "ours" ? "our server" : "real orchestrator"}`;

function ratioOf<T>(cells: readonly T[], ours: (cell: T) => number, theirs: (cell: T) => number): number {
  return ratioByRound(cells.map(ours), cells.map(theirs)).median;
}

function workerTable(rounds: readonly Round[]): Table {
  const groups = grouped(
    rounds.flatMap(({ workers }) => workers),
    workerName,
  );
  const rows = [...groups].map(([name, cells]): Cell[] => {
    const of = (side: "ours" | "sdk", pick: (answer: LoadAnswer) => number): number => median(cells.map((cell) => pick(cell[side])));
    const speed = [
      of("ours", rate),
      of("sdk", rate),
      ratioOf(
        cells,
        ({ ours }) => ours.perSecond,
        ({ sdk }) => sdk.perSecond,
      ),
    ];
    const spans = [of("ours", (a) => a.p50Ms), of("sdk", (a) => a.p50Ms), of("ours", (a) => a.p99Ms), of("sdk", (a) => a.p99Ms)];
    const cost = [
      of("ours", (a) => a.workerCpu),
      of("sdk", (a) => a.workerCpu),
      ratioOf(
        cells,
        ({ ours }) => ours.workerCpu,
        ({ sdk }) => sdk.workerCpu,
      ),
    ];
    return [name, ...speed, ...spans, ...cost];
  });
  const columns = [
    "worker",
    "ours, runs/s",
    "Python",
    "ratio",
    "p50 ms, ours",
    "Python",
    "p99 ms, ours",
    "Python",
    "CPU us, ours",
    "Python",
    "ratio",
  ];
  return {
    title:
      "Workers, on the real orchestrator (gRPC 0.13.0, HTTP 0.11.1) and on ours: one-step flows, latency of a whole run, CPU of the worker",
    columns,
    rows,
  };
}

const SERVERS = ["ours", "memory", "sqlite", "pair"] as const;
const SERVER_NAMES = {
  ours: "ours, FULL",
  memory: "real, in memory",
  sqlite: "real, SQLite",
  pair: "real, in memory, Python worker",
} as const;

function serverTable(rounds: readonly Round[]): Table {
  const groups = grouped(
    rounds.flatMap(({ servers }) => servers),
    loadName,
  );
  const rows = [...groups].flatMap(([name, cells]) =>
    SERVERS.map((server): Cell[] => {
      const of = (pick: (answer: LoadAnswer) => number): number => median(cells.map((cell) => pick(cell[server])));
      const ratio = server === "ours" ? "" : ratioTo(cells, server);
      return [`${name}  ${SERVER_NAMES[server]}`, of(rate), of((a) => a.p50Ms), of((a) => a.p99Ms), of((a) => a.serverCpu), ratio];
    }),
  );
  const columns = ["server", "runs/s", "p50 ms", "p99 ms", "server CPU us", "ours to it"];
  return {
    title: "Servers (real ones: gRPC 0.13.0, HTTP 0.11.1) with our worker: one-step flows, latency of a whole run, CPU of the server",
    columns,
    rows,
  };
}

function ratioTo(cells: readonly ServerCell[], server: (typeof SERVERS)[number]): number {
  return ratioOf(
    cells,
    ({ ours }) => ours.perSecond,
    (cell) => cell[server].perSecond,
  );
}

function idleTable(rounds: readonly Round[]): Table {
  const seen = rounds.flatMap(({ idle }) => idle ?? []);
  const row = (name: string, side: "ours" | "real"): Cell[] => {
    const of = (pick: (answer: IdleAnswer) => number): number => median(seen.map((one) => pick(one[side])));
    return [name, of((a) => a.bytesPerStream / 1024), of((a) => a.residentMib), of((a) => a.cpuMsPerSecond)];
  };
  const rows = seen.length === 0 ? [] : [row("ours", "ours"), row("0.13.0", "real")];
  const columns = ["server", "KiB a stream", "resident MiB", "CPU ms a second"];
  return { title: `${seen[0]?.streams ?? 0} idle PullTasks streams, each on a connection of its own`, columns, rows };
}

function chainTable(rounds: readonly Round[], steps: number): Table {
  const seen = rounds.flatMap(({ chain }) => chain ?? []);
  const row = (name: string, side: "ours" | "real"): Cell[] => {
    const span = (index: number, pick: "cpu" | "milliseconds"): number =>
      median(seen.map((one) => one[side].spans[index]?.[pick] ?? Number.NaN));
    const early = span(0, "cpu");
    const late = span(1, "cpu");
    return [
      name,
      early,
      late,
      late / early,
      span(0, "milliseconds") * 1000,
      span(1, "milliseconds") * 1000,
      median(seen.map((one) => one[side].seconds)),
    ];
  };
  const rows = seen.length === 0 ? [] : [row("ours, FULL", "ours"), row("0.13.0, in memory", "real")];
  const columns = ["server", "CPU us, early step", "late step", "ratio", "wall us, early step", "late step", "whole flow, s"];
  return { title: `A flow of ${steps.toLocaleString("en-US")} steps, each after the one before: cost of a step`, columns, rows };
}

/** With one caller, the real orchestrator waits 40 ms for its own packets on gRPC, with any worker. So that load has no target. */
function workerTargets(rounds: readonly Round[]): Target[] {
  const groups = grouped(
    rounds.flatMap(({ workers }) => workers).filter(({ concurrency }) => concurrency > 1),
    workerName,
  );
  return [...groups].map(([name, cells]): Target => {
    const isGrpc = cells[0]?.protocol === "gRPC";
    const value = ratioOf(
      cells,
      ({ ours }) => ours.perSecond,
      ({ sdk }) => sdk.perSecond,
    );
    return { what: `runs a second through our worker to Python's, ${name}`, value, wanted: "at least", bound: isGrpc ? 3 : 1 };
  });
}

/** What a run of our server and our worker may take with one caller. */
const RUN_MS = 5;

function serverTargets(rounds: readonly Round[]): Target[] {
  const groups = grouped(
    rounds.flatMap(({ servers }) => servers),
    loadName,
  );
  return [...groups].flatMap(([name, cells]): Target[] => {
    const pair = `runs a second, ours on disk to the real orchestrator in memory with its worker, ${name}`;
    const sqlite = `runs a second on our server to the real one with SQLite, ${name}`;
    const speed: Target[] = [
      { what: pair, value: ratioTo(cells, "pair"), wanted: "at least", bound: 1 },
      { what: sqlite, value: ratioTo(cells, "sqlite"), wanted: "at least", bound: 1 },
    ];
    if (cells[0]?.concurrency !== 1) return speed;
    const value = median(cells.map(({ ours }) => ours.p50Ms));
    return [...speed, { what: `a run, ${name}`, value, wanted: "at most", bound: RUN_MS, unit: " ms" }];
  });
}

/** On a shared machine, two runs of the same measurement differ by up to a fifth. */
function chainTargets(rounds: readonly Round[], steps: number): Target[] {
  const spans = rounds.flatMap(({ chain }) => (chain ? [chain.ours.spans] : []));
  if (spans.length === 0) return [];
  const value = ratioByRound(
    spans.map((one) => one[1]?.cpu ?? Number.NaN),
    spans.map((one) => one[0]?.cpu ?? Number.NaN),
  ).median;
  return [
    { what: `CPU of a late step to an early one, ${steps.toLocaleString("en-US")} steps, ours`, value, wanted: "at most", bound: 1.2 },
  ];
}

function loads({ workers, servers }: Round): { what: string; ours: boolean; answer: LoadAnswer }[] {
  return [
    ...workers.flatMap((cell) => [
      { what: `our worker, ${workerName(cell)}`, ours: true, answer: cell.ours },
      { what: `Python's worker, ${workerName(cell)}`, ours: cell.server === "ours", answer: cell.sdk },
    ]),
    ...servers.flatMap((cell) =>
      SERVERS.map((server) => ({ what: `${SERVER_NAMES[server]}, ${loadName(cell)}`, ours: server !== "pair", answer: cell[server] })),
    ),
  ];
}

/** Python's worker on the real orchestrator is not ours to judge. */
function violations(round: Round): string[] {
  return loads(round).flatMap(({ what, ours, answer: { lost, repeated, wrong } }) =>
    ours && lost + repeated + wrong > 0 ? [`${what}: ${lost} lost, ${repeated} repeated, ${wrong} wrong`] : [],
  );
}
