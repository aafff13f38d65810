// How many runs of durable functions a second: ours in one process and over HTTP, beside Restate's server with its TypeScript SDK.
import { fileURLToPath } from "node:url";
import { connect } from "longshore/client";
import { withFolder } from "./environment.ts";
import { FORMS, type Point, SHAPES, type ShapeName } from "./functions-shapes.ts";
import type { FunctionsAnswer, FunctionsRequest } from "./functions-side.ts";
import type { WorkerRequest } from "./functions-worker.ts";
import { definitionOf } from "./our-functions.ts";
import { startServer } from "./ours.ts";
import { measureApart, type Running, start } from "./processes.ts";
import type { Cell, Report, Target } from "./report.ts";
import { type RestatePeer, startRestate } from "./restate-peer.ts";
import { median, ratioByRound } from "./stats.ts";

const CALLERS = [1, 10, 100] as const;
const SIDES = ["embedded", "http", "restate"] as const;
type SideName = (typeof SIDES)[number];
const NAMES = {
  local: { embedded: "w.local, one process", http: "w.local, HTTP", restate: "Restate, ctx.run" },
  task: { embedded: "w.step, one process", http: "w.step, HTTP", restate: "Restate, service call" },
} as const;
const AT_LEAST = 5;
const WORKER = fileURLToPath(new URL("./functions-worker.js", import.meta.url));

export type RateRound = Point & { readonly sides: Record<SideName, FunctionsAnswer> };

/** One measurement is a warm-up and this time, so a round has 54 of them. */
export const TIMES = { warmUpSeconds: 1.5, seconds: 3 } as const;
export const QUICK_TIMES = { warmUpSeconds: 0.3, seconds: 0.7 } as const;

export async function rateRound(peer: RestatePeer, times: typeof TIMES | typeof QUICK_TIMES): Promise<RateRound[]> {
  const rounds: RateRound[] = [];
  for (const point of points()) {
    const ask: Ask = (side, url, pids) =>
      measureApart<FunctionsAnswer>("functions-side.js", { ...point, ...times, side, url, pids } satisfies FunctionsRequest);
    const embedded = await ask("embedded", "", []);
    const http = await overHttp(point, ask);
    const restate = await onRestate(peer, point, ask);
    rounds.push({ ...point, sides: { embedded, http, restate } });
  }
  return rounds;
}

const points = (): Point[] =>
  (Object.keys(SHAPES) as ShapeName[]).flatMap((shape) =>
    FORMS.flatMap((form) => CALLERS.map((concurrency) => ({ shape, form, concurrency }))),
  );

type Ask = (side: SideName, url: string, pids: readonly number[]) => Promise<FunctionsAnswer>;

function overHttp(point: Point, ask: Ask): Promise<FunctionsAnswer> {
  return withFolder(async (folder) => {
    const server = await startServer(folder, ["--log-level", "error"]);
    try {
      await connect(server.url).define(definitionOf(point));
      return await withWorker({ by: "ours", url: server.url, sdk: "", ...point }, async (worker) => {
        const answer = await ask("http", server.url, [server.pid, worker.pid]);
        return { ...answer, counted: await worker.count() };
      });
    } finally {
      await server.stop();
    }
  });
}

function onRestate(peer: RestatePeer, point: Point, ask: Ask): Promise<FunctionsAnswer> {
  return withFolder(async (folder) => {
    const server = await startRestate(folder, peer);
    try {
      return await withWorker({ by: "restate", url: "", sdk: peer.sdk, ...point }, async (worker) => {
        await server.register(worker.port);
        return ask("restate", server.url, [server.pid, worker.pid]);
      });
    } finally {
      await server.stop();
    }
  });
}

interface Worker {
  readonly pid: number;
  readonly port: number;
  /** Ends it. */
  count(): Promise<{ readonly executed: number; readonly repeated: number }>;
}

async function withWorker<T>(request: WorkerRequest, use: (worker: Worker) => Promise<T>): Promise<T> {
  const running: Running = start(process.execPath, [WORKER, JSON.stringify(request)]);
  try {
    const { port = 0 } = JSON.parse(await running.line((text) => text.includes('"ready"'))) as { port?: number };
    const count = async () => {
      const line = running.line((text) => text.includes('"executed"'));
      await running.stop();
      return JSON.parse(await line) as { executed: number; repeated: number };
    };
    return await use({ pid: running.pid, port, count });
  } finally {
    await running.stop();
  }
}

export function rateReport(rounds: readonly RateRound[]): Report {
  const rows: Cell[][] = [];
  const ratios: Cell[][] = [];
  const targets: Target[] = [];
  for (const { shape, form, concurrency } of points()) {
    const of = (one: Point["form"]) => rounds.filter((r) => r.shape === shape && r.form === one && r.concurrency === concurrency);
    const own = of(form);
    if (own.length === 0) continue;
    const pick = (side: SideName, what: "perSecond" | "cpuPerTask", from = own) => from.map((round) => round.sides[side][what]);
    const where = `${SHAPES[shape].label}, ${concurrency}`;
    for (const side of SIDES) {
      const answers = own.map((round) => round.sides[side]);
      rows.push(row(`${where}  ${NAMES[form][side]}`, answers));
    }
    for (const side of ["embedded", "http"] as const) {
      const label = `${where}  ${NAMES[form][side]}`;
      const beside = ratioByRound(pick(side, "perSecond"), pick("restate", "perSecond"));
      const cost = ratioByRound(pick(side, "cpuPerTask"), pick("restate", "cpuPerTask")).median;
      const toRun = ratioByRound(pick(side, "perSecond"), pick("restate", "perSecond", of("local"))).median;
      ratios.push([label, beside.median, `${beside.lowest.toFixed(2)}-${beside.highest.toFixed(2)}`, cost, toRun]);
      targets.push({ what: `runs a second, ${label}`, value: beside.median, wanted: "at least", bound: AT_LEAST });
    }
  }
  const tables = [
    {
      title: "Medians over rounds; CPU is that of all processes of a side",
      columns: ["shape, callers  side", "runs/s", "p50 ms", "p99 ms", "CPU us/run", "of it callers and embedded"],
      rows,
    },
    {
      title: "Ratios, ours to the same form of Restate, medians of the ratios of each round",
      columns: ["shape, callers  side", "rate", "range", "CPU", "rate to ctx.run"],
      rows: ratios,
    },
  ];
  const checked = rounds.reduce((sum, { sides }) => sum + SIDES.reduce((runs, side) => runs + sides[side].runs, 0), 0);
  return { tables, targets, violations: rounds.flatMap(violations), checked, rounds };
}

function row(label: string, answers: readonly FunctionsAnswer[]): Cell[] {
  const of = (pick: (answer: FunctionsAnswer) => number) => median(answers.map(pick));
  return [label, of((a) => a.perSecond), of((a) => a.p50), of((a) => a.p99), of((a) => a.cpuPerTask), of((a) => a.ownCpuPerTask)];
}

/** Only ours can violate: Restate may run a step again, as its SDK retries. */
function violations({ shape, form, concurrency, sides }: RateRound): string[] {
  return (["embedded", "http"] as const).flatMap((side) => {
    const { runs, wrong, counted } = sides[side];
    const lost = runs * SHAPES[shape].steps - (counted?.executed ?? 0);
    const repeated = counted?.repeated ?? 0;
    if (wrong === 0 && lost === 0 && repeated === 0) return [];
    return [`${NAMES[form][side]}, ${shape} at ${concurrency}: ${lost} steps lost, ${repeated} repeated, ${wrong} runs wrongly answered`];
  });
}
