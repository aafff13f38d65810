// In-process no-op tasks at three concurrencies: ours, BullMQ on a durable Redis, and the bare SQLite ceiling.
import type { CeilingResult } from "./bare-sqlite.ts";
import type { LoopResult } from "./closed-loop.ts";
import type { EmbeddedRequest } from "./embedded-side.ts";
import { requireCommand } from "./environment.ts";
import { measureApart } from "./processes.ts";
import type { Cell, Options, Report, Target } from "./report.ts";
import { median, ratioByRound } from "./stats.ts";

const CONCURRENCIES = [1, 10, 100] as const;
const WANTED: Record<number, { readonly bound: number; readonly aim?: number }> = {
  1: { bound: 1.5 },
  10: { bound: 3, aim: 5 },
  100: { bound: 3, aim: 5 },
};

interface Round {
  readonly concurrency: number;
  readonly ours: LoopResult;
  readonly bullmq: LoopResult;
  readonly sqlite: CeilingResult;
}

export async function embedded(options: Options): Promise<Report> {
  requireCommand("redis-server", "redis-server");
  const times = options.quick ? { warmUpSeconds: 0.3, seconds: 0.7 } : { warmUpSeconds: 1, seconds: 3 };
  const rounds: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    for (const concurrency of CONCURRENCIES) {
      const ask = <T>(side: EmbeddedRequest["side"]) => measureApart<T>("embedded-side.js", { side, concurrency, ...times });
      const ours = await ask<LoopResult>("ours");
      const bullmq = await ask<LoopResult>("bullmq");
      const sqlite = await ask<CeilingResult>("sqlite");
      rounds.push({ concurrency, ours, bullmq, sqlite });
    }
  }
  return summarise(rounds);
}

function summarise(rounds: readonly Round[]): Report {
  const rows: Cell[][] = [];
  const ratios: Cell[][] = [];
  const targets: Target[] = [];
  for (const concurrency of CONCURRENCIES) {
    const own = rounds.filter((round) => round.concurrency === concurrency);
    const rates = {
      ours: own.map((r) => r.ours.perSecond),
      bullmq: own.map((r) => r.bullmq.perSecond),
      sqlite: own.map((r) => r.sqlite.perSecond),
    };
    for (const [label, side] of [
      ["ours", own.map((r) => r.ours)],
      ["BullMQ", own.map((r) => r.bullmq)],
    ] as const)
      rows.push(row(concurrency, label, side));
    const ceilingCpu = median(own.map((r) => r.sqlite.cpuPerTask));
    rows.push([`${concurrency}  bare SQLite`, median(rates.sqlite), "-", "-", ceilingCpu, ceilingCpu, 0]);
    const beside = ratioByRound(rates.ours, rates.bullmq);
    const cost = ratioByRound(
      own.map((r) => r.ours.cpuPerTask),
      own.map((r) => r.bullmq.cpuPerTask),
    );
    ratios.push([
      String(concurrency),
      beside.median,
      `${beside.lowest.toFixed(2)}-${beside.highest.toFixed(2)}`,
      cost.median,
      ratioByRound(rates.ours, rates.sqlite).median,
    ]);
    targets.push({
      what: `tasks a second beside BullMQ at ${concurrency}`,
      value: beside.median,
      wanted: "at least",
      ...(WANTED[concurrency] ?? { bound: 1 }),
    });
  }
  const columns = ["concurrency  side", "tasks/s", "p50 ms", "p99 ms", "CPU us/task", "of it in this process", "of it in Redis"];
  const tables = [
    { title: "Medians over rounds", columns, rows },
    {
      title: "Ratios, ours to the other, medians of the ratios of each round",
      columns: ["concurrency", "rate to BullMQ", "range", "CPU to BullMQ", "rate to bare SQLite"],
      rows: ratios,
    },
  ];
  return {
    tables,
    targets,
    violations: rounds.flatMap(violations),
    checked: rounds.reduce((sum, { ours, bullmq }) => sum + ours.tasks + bullmq.tasks, 0),
    rounds,
  };
}

function row(concurrency: number, label: string, side: readonly LoopResult[]): Cell[] {
  const of = (pick: (result: LoopResult) => number) => median(side.map(pick));
  return [
    `${concurrency}  ${label}`,
    of((r) => r.perSecond),
    of((r) => r.p50),
    of((r) => r.p99),
    of((r) => r.cpuPerTask),
    of((r) => r.ownCpuPerTask),
    of((r) => r.storeCpuPerTask),
  ];
}

function violations({ concurrency, ours, bullmq, sqlite }: Round): string[] {
  const found: string[] = [];
  for (const [name, side] of [
    ["ours", ours],
    ["BullMQ", bullmq],
  ] as const) {
    if (side.lost + side.repeated + side.wrong > 0)
      found.push(`${name} at ${concurrency}: ${side.lost} lost, ${side.repeated} repeated, ${side.wrong} wrongly answered`);
  }
  if (sqlite.lost > 0) found.push(`bare SQLite at ${concurrency}: ${sqlite.lost} lost`);
  return found;
}
