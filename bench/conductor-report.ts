// The tables and verdicts of the Conductor benchmark.
import type { RawAnswer } from "./conductor-raw-side.ts";
import type { Shape, ShapesAnswer } from "./conductor-shapes-side.ts";
import type { WorkerAnswer } from "./conductor-worker-side.ts";
import type { Cell, Report, Table, Target } from "./report.ts";
import { median, ratioByRound } from "./stats.ts";

export interface WorkerCell {
  readonly slots: number;
  readonly updateV2: boolean;
  readonly total: number;
  readonly ours: WorkerAnswer;
  readonly sdk: WorkerAnswer;
}

export interface ServerFigures {
  readonly readyMs: number;
  readonly raw: RawAnswer;
  readonly workers: readonly WorkerCell[];
  /** The SDK's worker while runs are started. */
  readonly flow: WorkerAnswer;
  readonly pickUp: { readonly ours: WorkerAnswer; readonly sdk: WorkerAnswer };
  readonly shapes: ShapesAnswer;
  readonly tasks: number;
}

export interface ShapesRound {
  readonly ours: ShapesAnswer;
  readonly reference: ShapesAnswer;
}

export interface Round {
  readonly ours: ServerFigures;
  readonly reference: ServerFigures;
}

export interface Growth {
  readonly small: RawAnswer;
  readonly large: RawAnswer;
  readonly runs: number;
}

type ServerName = keyof Round;
const SERVERS: readonly ServerName[] = ["ours", "reference"];

export function summarise(rounds: readonly Round[], growth: Growth): Report {
  return {
    tables: [workerTable(rounds), pickUpTable(rounds), serverTable(rounds), shapesTable(shapesOf(rounds)), growthTable(growth)],
    targets: [...workerTargets(rounds), ...serverTargets(rounds), ...shapesTargets(shapesOf(rounds)), flat(growth)],
    violations: [...violations(rounds, growth), ...lostShapes(shapesOf(rounds))],
    checked: rounds.reduce((sum, round) => sum + checked(round), 0),
    rounds: { rounds, growth },
  };
}

/** Only what the servers perform by themselves. */
export function summariseShapes(rounds: readonly ShapesRound[]): Report {
  const tables = [shapesTable(rounds)];
  return { tables, targets: shapesTargets(rounds), violations: lostShapes(rounds), checked: 0, rounds };
}

const shapesOf = (rounds: readonly Round[]): ShapesRound[] =>
  rounds.map(({ ours, reference }) => ({ ours: ours.shapes, reference: reference.shapes }));

const SHAPES = [
  ["iterations of a DO_WHILE with an INLINE", ({ loop }: ShapesAnswer) => loop],
  ["INLINE tasks of a FORK_JOIN_DYNAMIC", ({ fork }: ShapesAnswer) => fork],
  ["runs of an INLINE", ({ inline }: ShapesAnswer) => inline],
  ["runs of an HTTP task", ({ http }: ShapesAnswer) => http],
] as const;

const eachSide = (rounds: readonly ShapesRound[], pick: (answer: ShapesAnswer) => number) => {
  const ours = rounds.map((round) => pick(round.ours));
  const reference = rounds.map((round) => pick(round.reference));
  return { ours: median(ours), reference: median(reference), ratio: ratioByRound(ours, reference).median };
};

function shapesTable(rounds: readonly ShapesRound[]): Table {
  const rows = SHAPES.map(([label, of]): Cell[] => {
    const rate = eachSide(rounds, (answer) => of(answer).perSecond);
    const used = eachSide(rounds, (answer) => (of(answer) as Shape).serverCpu);
    return [label, rate.ours, rate.reference, rate.ratio, used.ours, used.reference, used.ratio];
  });
  const columns = ["what the server performs", "ours, a second", "3.32.3, a second", "ratio", "ours, CPU us", "3.32.3, CPU us", "ratio"];
  return { title: "Loops, dynamic forks, expressions and calls, medians over rounds", columns, rows };
}

const shapesTargets = (rounds: readonly ShapesRound[]): Target[] =>
  SHAPES.map(([label, of]) => {
    const { ratio: value } = eachSide(rounds, (answer) => of(answer).perSecond);
    return { what: `${label}, a second`, value, wanted: "at least", bound: 10 };
  });

const lostShapes = (rounds: readonly ShapesRound[]): string[] =>
  rounds.flatMap(({ ours }) => (ours.lost > 0 ? [`loops, forks, expressions and calls: ${ours.lost} runs did not succeed`] : []));

const cellsOf = (rounds: readonly Round[], server: ServerName, slots: number, updateV2: boolean): WorkerCell[] =>
  rounds.flatMap((round) => round[server].workers.filter((cell) => cell.slots === slots && cell.updateV2 === updateV2));

const ratio = (cells: readonly WorkerCell[], pick: (answer: WorkerAnswer) => number): number =>
  ratioByRound(
    cells.map(({ ours }) => pick(ours)),
    cells.map(({ sdk }) => pick(sdk)),
  ).median;

const rate = (answer: WorkerAnswer): number => answer.perSecond;
const cpu = (answer: WorkerAnswer): number => answer.workerCpu;

function workerTable(rounds: readonly Round[]): Table {
  const rows: Cell[][] = [];
  for (const server of SERVERS) {
    for (const { slots, updateV2 } of rounds[0]?.[server].workers ?? []) {
      const cells = cellsOf(rounds, server, slots, updateV2);
      const of = (side: "ours" | "sdk", pick: (answer: WorkerAnswer) => number): number => median(cells.map((cell) => pick(cell[side])));
      const label = `${server === "ours" ? "our server" : "real server"}, ${slots} slots, ${updateV2 ? "v2" : "v1"}`;
      rows.push([label, of("ours", rate), of("sdk", rate), ratio(cells, rate), of("ours", cpu), of("sdk", cpu), ratio(cells, cpu)]);
    }
  }
  const columns = ["worker on a full queue", "ours, tasks/s", "SDK, tasks/s", "ratio", "ours, CPU us", "SDK, CPU us", "ratio"];
  return { title: "Workers: tasks a second and CPU of the worker a task, medians over rounds", columns, rows };
}

function pickUpTable(rounds: readonly Round[]): Table {
  const rows: Cell[][] = [];
  for (const server of SERVERS) {
    for (const side of ["ours", "sdk"] as const) {
      const answers = rounds.map((round) => round[server].pickUp[side]);
      const of = (pick: (answer: WorkerAnswer) => number): number => median(answers.map(pick));
      const label = `${side === "ours" ? "our worker" : "the SDK"} on ${server === "ours" ? "our server" : "the real server"}`;
      rows.push([label, of((answer) => answer.meanMs), of((answer) => answer.p50Ms), of((answer) => answer.p99Ms)]);
    }
  }
  return { title: "From the start call to the handler, idle server, one slot", columns: ["who", "mean ms", "p50 ms", "p99 ms"], rows };
}

interface Figure {
  readonly label: string;
  readonly pick: (figures: ServerFigures) => number;
  readonly target?: Pick<Target, "wanted" | "bound">;
}

const FIGURES: readonly Figure[] = [
  { label: "workflows/s through the SDK", pick: ({ flow }) => flow.perSecond },
  { label: "raw poll + update, tasks/s", pick: ({ raw }) => raw.perSecond, target: { wanted: "at least", bound: 10 } },
  { label: "raw starts/s", pick: ({ raw }) => raw.startsPerSecond },
  { label: "server CPU us a raw task", pick: ({ raw }) => raw.serverCpu, target: { wanted: "at most", bound: 0.1 } },
  { label: "start to handler through the SDK, p50 ms", pick: ({ pickUp }) => pickUp.sdk.p50Ms },
  { label: "JOIN delay, p50 ms", pick: ({ raw }) => raw.joinP50Ms },
  { label: "JOIN delay, p99 ms", pick: ({ raw }) => raw.joinP99Ms },
  { label: "memory after the load, MiB", pick: ({ raw }) => raw.residentMib, target: { wanted: "at most", bound: 0.25 } },
  { label: "cold start, ms", pick: ({ readyMs }) => readyMs, target: { wanted: "at most", bound: 0.05 } },
];

function serverFigure(rounds: readonly Round[], { pick }: Figure): { ours: number; reference: number; ratio: number } {
  const ours = rounds.map((round) => pick(round.ours));
  const reference = rounds.map((round) => pick(round.reference));
  return { ours: median(ours), reference: median(reference), ratio: ratioByRound(ours, reference).median };
}

function serverTable(rounds: readonly Round[]): Table {
  const rows = FIGURES.map((figure): Cell[] => {
    const { ours, reference, ratio } = serverFigure(rounds, figure);
    return [figure.label, ours, reference, ratio];
  });
  return { title: "Servers under the same callers, medians over rounds", columns: ["figure", "ours", "3.32.3", "ratio"], rows };
}

function growthTable({ small, large, runs }: Growth): Table {
  const row = (label: string, pick: (answer: RawAnswer) => number): Cell[] => [label, pick(small), pick(large), pick(large) / pick(small)];
  return {
    title: `Our server on a file with 1,000 and with ${runs.toLocaleString("en-US")} finished runs`,
    columns: ["figure", "few", "many", "ratio"],
    rows: [
      row("server CPU us a raw task", (answer) => answer.serverCpu),
      row("raw poll + update, tasks/s", (answer) => answer.perSecond),
      row("raw starts/s", (answer) => answer.startsPerSecond),
    ],
  };
}

function workerTargets(rounds: readonly Round[]): Target[] {
  const at = (server: ServerName, slots: number, updateV2: boolean): WorkerCell[] => cellsOf(rounds, server, slots, updateV2);
  const ratioTarget = (what: string, cells: readonly WorkerCell[], bound: number): Target => ({
    what,
    value: ratio(cells, rate),
    wanted: "at least",
    bound,
  });
  const real = (rounds[0]?.reference.workers ?? []).map(({ slots, updateV2 }) =>
    ratioTarget(`worker on the real server, ${slots} slots, ${updateV2 ? "v2" : "v1"}`, at("reference", slots, updateV2), 1),
  );
  const best = median(at("ours", 10, true).map(({ ours }) => ours.perSecond));
  return [
    ratioTarget("worker on our server, 10 slots, v1", at("ours", 10, false), 3),
    ratioTarget("worker on our server, 10 slots, v2", at("ours", 10, true), 1.5),
    { what: "our worker on our server, 10 slots, of 2,000 tasks/s", value: best / 2_000, wanted: "at least", bound: 1 },
    { what: "CPU of the worker a task, 10 slots, v1", value: ratio(at("ours", 10, false), cpu), wanted: "at most", bound: 0.5 },
    { what: "CPU of the worker a task, 10 slots, v2", value: ratio(at("ours", 10, true), cpu), wanted: "at most", bound: 0.5 },
    {
      what: "mean pick-up of our worker on our server, of 5 ms",
      value: median(rounds.map((round) => round.ours.pickUp.ours.meanMs)) / 5,
      wanted: "at most",
      bound: 1,
    },
    ...real,
  ];
}

function serverTargets(rounds: readonly Round[]): Target[] {
  const targets = FIGURES.flatMap((figure): Target[] =>
    figure.target === undefined ? [] : [{ what: figure.label, value: serverFigure(rounds, figure).ratio, ...figure.target }],
  );
  const join = median(rounds.map((round) => round.ours.raw.joinP50Ms));
  return [...targets, { what: "JOIN delay p50, of 5 ms", value: join / 5, wanted: "at most", bound: 1 }];
}

/** On a shared machine, two runs of the same measurement differ by up to a fifth. */
const flat = ({ small, large, runs }: Growth): Target => ({
  what: `server CPU a raw task, ${runs.toLocaleString("en-US")} to 1,000 finished runs`,
  value: large.serverCpu / small.serverCpu,
  wanted: "at most",
  bound: 1.2,
});

/** What was lost or repeated on our server, or by our worker on the real one. The SDK on the real server is not ours to judge. */
function violations(rounds: readonly Round[], growth: Growth): string[] {
  const found: string[] = [];
  const look = (what: string, { lost, repeated }: { lost: number; repeated: number }): void => {
    if (lost + repeated > 0) found.push(`${what}: ${lost} lost, ${repeated} repeated`);
  };
  for (const { ours, reference } of rounds) {
    look("raw", ours.raw);
    look("SDK while starting", ours.flow);
    look("pick-up", ours.pickUp.ours);
    look("pick-up by the SDK", ours.pickUp.sdk);
    for (const cell of ours.workers) {
      look(`our worker, ${cell.slots} slots`, cell.ours);
      look(`the SDK, ${cell.slots} slots`, cell.sdk);
    }
    for (const cell of reference.workers) look(`our worker on the real server, ${cell.slots} slots`, cell.ours);
  }
  look("few finished runs", growth.small);
  look("many finished runs", growth.large);
  return found;
}

function checked({ ours, reference }: Round): number {
  const drained = [...ours.workers, ...reference.workers].reduce((sum, { total }) => sum + 2 * total, 0);
  return drained + ours.tasks + reference.tasks;
}
