// What the PostgreSQL benchmark reports about its measurements.
import type { PostgresLoop, SideName, TakeOver } from "./postgres-side.ts";
import type { Cell, Report, Table, Target } from "./report.ts";
import { median, type Ratio, ratioByRound } from "./stats.ts";

export interface PostgresRound {
  readonly concurrency: number;
  readonly sides: ReadonlyMap<SideName, PostgresLoop>;
}

export interface PostgresReportInput {
  readonly tasks: readonly PostgresRound[];
  readonly chains: readonly PostgresRound[];
  readonly takeOvers: readonly { readonly open: number; readonly times: readonly TakeOver[] }[];
}

/** The rate of ours on PostgreSQL divided by that of each other side, by the number of callers. */
const WANTED: Partial<Record<SideName, Record<number, number>>> = {
  sqlite: { 1: 0.45, 10: 0.5, 100: 0.6 },
  "graphile-worker": { 1: 2, 10: 6, 100: 8 },
  "pg-boss": { 1: 2, 10: 6, 100: 8 },
};
const LABELS: Record<SideName, string> = {
  sqlite: "ours, SQLite",
  postgres: "ours, PostgreSQL",
  "graphile-worker": "graphile-worker",
  "pg-boss": "pg-boss",
};
const TAKE_OVER_MS_MAX = 2_000;
const TAKE_OVER_TASKS = 200_000;

export function postgresReport(input: PostgresReportInput): Report {
  const { tasks, chains, takeOvers } = input;
  const tables: Table[] = [...loopTables("Tasks", tasks), ...loopTables("Runs of three steps", chains)];
  if (takeOvers.length > 0) tables.push(takeOverTable(takeOvers));
  const rounds = [...tasks, ...chains];
  return {
    tables,
    targets: [
      ...rateTargets(tasks),
      ...missTargets("task", tasks),
      ...missTargets("run of three steps", chains),
      ...takeOverTargets(takeOvers),
    ],
    violations: rounds.flatMap(violations),
    checked: rounds.reduce((sum, { sides }) => sum + [...sides.values()].reduce((own, { tasks: count }) => own + count, 0), 0),
    rounds: { tasks: tasks.map(plain), chains: chains.map(plain), takeOvers },
  };
}

const plain = ({ concurrency, sides }: PostgresRound) => ({ concurrency, ...Object.fromEntries(sides) });

interface Group {
  readonly concurrency: number;
  readonly names: readonly SideName[];
  of(side: SideName, pick: (result: PostgresLoop) => number): number[];
}

function groups(rounds: readonly PostgresRound[]): Group[] {
  return [...new Set(rounds.map(({ concurrency }) => concurrency))].map((concurrency) => {
    const own = rounds.filter((round) => round.concurrency === concurrency);
    return {
      concurrency,
      names: [...(own[0]?.sides.keys() ?? [])],
      of: (side, pick) => own.map(({ sides }) => pick(sides.get(side) as PostgresLoop)),
    };
  });
}

function loopTables(title: string, rounds: readonly PostgresRound[]): Table[] {
  if (rounds.length === 0) return [];
  const columns = ["callers  side", "a second", "range", "p50 ms", "p99 ms", "CPU us, Node", "CPU us, PostgreSQL", "commits", "loads"];
  const rows = groups(rounds).flatMap(({ concurrency, names, of }) =>
    names.map((side): Cell[] => {
      const rates = of(side, (r) => r.perSecond);
      const isOurs = side === "sqlite" || side === "postgres";
      return [
        `${concurrency}  ${LABELS[side]}`,
        median(rates),
        `${Math.round(Math.min(...rates))}-${Math.round(Math.max(...rates))}`,
        median(of(side, (r) => r.p50)),
        median(of(side, (r) => r.p99)),
        median(of(side, (r) => r.ownCpuPerTask)),
        median(of(side, (r) => r.storeCpuPerTask)),
        isOurs ? median(of(side, (r) => r.commitsPerTask)) : "-",
        isOurs ? median(of(side, (r) => r.loadsPerTask)) : "-",
      ];
    }),
  );
  const ratios = groups(rounds).flatMap((group) =>
    group.names
      .filter((side) => side !== "postgres")
      .map((side): Cell[] => {
        const rate = rateTo(group, side);
        const cpu = ratioByRound(
          group.of("postgres", (r) => r.cpuPerTask),
          group.of(side, (r) => r.cpuPerTask),
        );
        return [
          `${group.concurrency}  to ${LABELS[side]}`,
          rate.median,
          `${rate.lowest.toFixed(2)}-${rate.highest.toFixed(2)}`,
          cpu.median,
        ];
      }),
  );
  return [
    { title: `${title}: medians over rounds; commits and loads for each`, columns, rows },
    {
      title: `${title}: ours on PostgreSQL to the other, medians of the ratios of each round`,
      columns: ["callers", "rate", "range", "CPU"],
      rows: ratios,
    },
  ];
}

function rateTo({ of }: Group, side: SideName): Ratio {
  return ratioByRound(
    of("postgres", (r) => r.perSecond),
    of(side, (r) => r.perSecond),
  );
}

function rateTargets(rounds: readonly PostgresRound[]): Target[] {
  return groups(rounds).flatMap((group) =>
    group.names.flatMap((side): Target[] => {
      const bound = WANTED[side]?.[group.concurrency];
      if (bound === undefined) return [];
      const what = `tasks a second beside ${LABELS[side]} at ${group.concurrency}`;
      return [{ what, value: rateTo(group, side).median, wanted: "at least", bound }];
    }),
  );
}

function missTargets(what: string, rounds: readonly PostgresRound[]): Target[] {
  return groups(rounds).map(({ concurrency, of }) => ({
    what: `loads for each ${what} on PostgreSQL at ${concurrency}`,
    value: Math.max(...of("postgres", (r) => r.loadsPerTask)),
    wanted: "at most",
    bound: 0,
    unit: "",
  }));
}

function takeOverTable(takeOvers: PostgresReportInput["takeOvers"]): Table {
  return {
    title: "Take-over: from opening the store until a worker has one of the open tasks",
    columns: ["open tasks", "ms", "range", "CPU ms, Node", "loads"],
    rows: takeOvers.map(({ open, times }) => {
      const ms = times.map(({ milliseconds }) => milliseconds);
      return [
        open.toLocaleString("en-US"),
        median(ms),
        `${Math.round(Math.min(...ms))}-${Math.round(Math.max(...ms))}`,
        median(times.map(({ cpuMilliseconds }) => cpuMilliseconds)),
        median(times.map(({ loads }) => loads)),
      ];
    }),
  };
}

function takeOverTargets(takeOvers: PostgresReportInput["takeOvers"]): Target[] {
  return takeOvers
    .filter(({ open }) => open === TAKE_OVER_TASKS)
    .map(({ open, times }) => ({
      what: `take-over of ${open.toLocaleString("en-US")} open tasks`,
      value: median(times.map(({ milliseconds }) => milliseconds)),
      wanted: "at most",
      bound: TAKE_OVER_MS_MAX,
      unit: " ms",
    }));
}

function violations({ concurrency, sides }: PostgresRound): string[] {
  return [...sides].flatMap(([side, { lost, repeated, wrong }]) =>
    lost + repeated + wrong === 0
      ? []
      : [`${LABELS[side]} at ${concurrency}: ${lost} lost, ${repeated} repeated, ${wrong} wrongly answered`],
  );
}
