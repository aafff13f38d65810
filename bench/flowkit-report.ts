// The tables and verdicts of the FlowKit benchmark.
import type { Cell, Report, Table, Target } from "./report.ts";
import { median, quantile, ratioByRound } from "./stats.ts";

export type BusName = "embedded" | "Kafka";

export interface Flow {
  readonly bus: BusName;
  readonly perSecond: number;
  /** Microseconds a batch. */
  readonly serverCpu: number;
  readonly workerCpu: number;
  readonly batches: number;
  /** How many different ones are in the store afterwards. */
  readonly kept: number;
}

export interface Waits {
  readonly bus: BusName;
  /** From the end of an upstream batch to the start of it downstream, in ms: of each run's first batch, and of later ones. */
  readonly first: readonly number[];
  readonly next: readonly number[];
  readonly lost: number;
}

export interface Growth {
  /** Equal spans of one long stream. */
  readonly spans: readonly { readonly ms: number; readonly cpu: number }[];
  readonly batches: number;
  readonly kept: number;
}

export interface Round {
  /** Records a second of Kafka's client by itself. */
  readonly ceiling: number;
  readonly flows: readonly Flow[];
  readonly waits: readonly Waits[];
  readonly growth: Growth | undefined;
}

const BUSES: readonly BusName[] = ["embedded", "Kafka"];
const RATE_WANTED = 0.5;
const GROWTH_WANTED = 1.2;

export function summarise(rounds: readonly Round[], long: number): Report {
  const kept = rounds.flatMap((round) => [...round.flows, ...(round.growth === undefined ? [] : [round.growth])]);
  const lost = rounds.flatMap((round) => round.waits).filter((waits) => waits.lost !== 0);
  return {
    tables: [rateTable(rounds), waitTable(rounds), growthTable(rounds, long)].filter(({ rows }) => rows.length > 0),
    targets: [...rateTargets(rounds), ...growthTargets(rounds, long)],
    violations: [
      ...kept.filter((flow) => flow.kept !== flow.batches).map((flow) => `${flow.kept} of ${flow.batches} batches are kept`),
      ...lost.map((waits) => `${waits.lost} batches never came downstream`),
    ],
    checked: kept.reduce((sum, { batches }) => sum + batches, 0),
    rounds,
  };
}

const flowsOf = (rounds: readonly Round[], bus: BusName): Flow[] => rounds.flatMap(({ flows }) => flows.filter((flow) => flow.bus === bus));
const hasRates = (rounds: readonly Round[]): boolean => rounds.some(({ flows }) => flows.length > 0);

function ratioTo(rounds: readonly Round[], bus: BusName): number {
  return ratioByRound(
    flowsOf(rounds, bus).map(({ perSecond }) => perSecond),
    rounds.map(({ ceiling }) => ceiling),
  ).median;
}

function rateTable(rounds: readonly Round[]): Table {
  const columns = ["batches of 1 kB", "a second", "of the client's rate", "server CPU us", "worker CPU us"];
  const title = "Batches through worker and coordinator, durable at each step";
  if (!hasRates(rounds)) return { title, columns, rows: [] };
  const bare: Cell[] = ["Kafka's client by itself", median(rounds.map(({ ceiling }) => ceiling)), 1, "-", "-"];
  const ours = BUSES.map((bus): Cell[] => {
    const flows = flowsOf(rounds, bus);
    const of = (pick: (flow: Flow) => number): number => median(flows.map(pick));
    return [
      `ours, ${bus} bus`,
      of((flow) => flow.perSecond),
      ratioTo(rounds, bus),
      of((flow) => flow.serverCpu),
      of((flow) => flow.workerCpu),
    ];
  });
  return { title, columns, rows: [bare, ...ours] };
}

function rateTargets(rounds: readonly Round[]): Target[] {
  if (!hasRates(rounds)) return [];
  return BUSES.map((bus) => ({
    what: `batches a second on the ${bus} bus, of Kafka's client by itself`,
    value: ratioTo(rounds, bus),
    wanted: "at least" as const,
    bound: RATE_WANTED,
  }));
}

function waitTable(rounds: readonly Round[]): Table {
  const rows = BUSES.flatMap((bus): Cell[][] => {
    const waits = rounds.flatMap((round) => round.waits.filter((each) => each.bus === bus));
    if (waits.length === 0) return [];
    const of = (pick: (each: Waits) => readonly number[], q: number): number => median(waits.map((each) => quantile(pick(each), q)));
    const [first, next] = [(each: Waits) => each.first, (each: Waits) => each.next];
    return [[bus, of(first, 0.5), of(first, 0.99), of(next, 0.5), of(next, 0.99)]];
  });
  const columns = ["bus", "first batch p50 ms", "p99 ms", "later batch p50 ms", "p99 ms"];
  return { title: "From the end of a batch to its start in the next node (the first one starts that node)", columns, rows };
}

interface Late {
  readonly ms: number;
  readonly cpu: number;
}

/** The last span compared with the first. */
function late({ spans }: Growth): Late {
  const [first, last] = [spans[0], spans.at(-1)];
  if (first === undefined || last === undefined) return { ms: Number.NaN, cpu: Number.NaN };
  return { ms: last.ms / first.ms, cpu: last.cpu / first.cpu };
}

const growths = (rounds: readonly Round[]): Growth[] => rounds.flatMap(({ growth }) => (growth === undefined ? [] : [growth]));

function growthTable(rounds: readonly Round[], long: number): Table {
  const all = growths(rounds);
  const spans = all[0]?.spans.length ?? 0;
  const rows = Array.from({ length: spans }, (_, at): Cell[] => {
    const of = (pick: (span: Late) => number): number => median(all.map((growth) => pick(growth.spans[at] as Late)));
    const batches = long / spans;
    return [`${at + 1} of ${spans}`, (batches / of((span) => span.ms)) * 1_000, of((span) => span.cpu) / batches];
  });
  const columns = ["span", "batches a second", "server CPU us a batch"];
  return { title: `${long.toLocaleString("en-US")} batches in one run, embedded bus`, columns, rows };
}

function growthTargets(rounds: readonly Round[], long: number): Target[] {
  const all = growths(rounds);
  if (all.length === 0) return [];
  const bound = { wanted: "at most" as const, bound: GROWTH_WANTED };
  return [
    {
      what: `time of the last tenth of ${long.toLocaleString("en-US")} batches beside the first`,
      value: median(all.map((each) => late(each).ms)),
      ...bound,
    },
    { what: "the same, server CPU", value: median(all.map((each) => late(each).cpu)), ...bound },
  ];
}
