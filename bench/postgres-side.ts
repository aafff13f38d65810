// One measurement of the PostgreSQL benchmark, in a process of its own that loads nothing of the other sides.

import { task, work } from "longshore";
import { closedLoop, type LoopResult, type Side, Witness } from "./closed-loop.ts";
import { withFolder } from "./environment.ts";
import { modulesFor, openChainsOn, openEngineOn, openTasksOn, type Place, type StoreCounts } from "./our-stores.ts";
import { answerApart, familyCpuMicroseconds } from "./processes.ts";

export const PEERS = ["graphile-worker", "pg-boss"] as const;
export type SideName = "sqlite" | "postgres" | (typeof PEERS)[number];

export type PostgresRequest =
  | {
      readonly kind: "tasks" | "chains";
      readonly side: SideName;
      readonly url: string;
      readonly serverPid: number;
      readonly concurrency: number;
      readonly warmUpSeconds: number;
      readonly seconds: number;
    }
  /** Posts one task that no worker takes, which the benchmark then copies. */
  | { readonly kind: "post"; readonly url: string }
  | { readonly kind: "takeOver"; readonly url: string };

export interface PostgresLoop extends LoopResult {
  /** Of ours, for each task or run. */
  readonly commitsPerTask: number;
  readonly loadsPerTask: number;
}

export interface TakeOver {
  readonly milliseconds: number;
  readonly cpuMilliseconds: number;
  readonly loads: number;
}

type Open = Side & { readonly counts?: StoreCounts; close(): Promise<void> };
type LoopRequest = PostgresRequest & { kind: "tasks" | "chains" };

const loop = (request: LoopRequest): Promise<PostgresLoop> =>
  withFolder(async (folder) => {
    const witness = new Witness();
    const side = await open(request, folder, witness);
    const { counts } = side;
    const storeCpu = request.side === "sqlite" ? undefined : () => familyCpuMicroseconds(request.serverPid);
    let before = { commits: 0, loads: 0 };
    const result = await closedLoop({ submit: side.submit, storeCpu }, witness, {
      ...request,
      warm: () => {
        before = { commits: counts?.commits ?? 0, loads: counts?.loads ?? 0 };
      },
    });
    await side.close();
    const each = (name: keyof StoreCounts) => ((counts?.[name] ?? 0) - before[name]) / result.tasks;
    return { ...result, commitsPerTask: each("commits"), loadsPerTask: each("loads") };
  });

async function open({ kind, side, url, concurrency }: LoopRequest, folder: string, { handler }: Witness): Promise<Open> {
  if (side === "graphile-worker") return (await import("./graphile.ts")).openGraphile(url, concurrency, handler);
  if (side === "pg-boss") return (await import("./pg-boss.ts")).openPgBoss(url, concurrency, handler);
  const place: Place = side === "sqlite" ? { folder } : { url };
  return kind === "tasks" ? openTasksOn(place, concurrency, handler) : openChainsOn(place, concurrency, handler);
}

/** The call is not awaited: no worker takes the task. */
async function post(url: string): Promise<null> {
  const { program, counts, close } = await openEngineOn({ url });
  const before = counts.commits;
  program.call("noop", { sequence: 0, padding: "i".repeat(170) }).catch(() => undefined);
  while (counts.commits === before) await new Promise((resolve) => setImmediate(resolve));
  await close();
  return null;
}

/** From opening the store until a worker has claimed one of the open tasks. */
async function takeOver(url: string): Promise<TakeOver> {
  await modulesFor({ url });
  const cpuBefore = process.cpuUsage();
  const before = performance.now();
  const { program, counts, close } = await openEngineOn({ url });
  let worker: { stop(): Promise<void> } | undefined;
  await new Promise<void>((resolve, reject) => {
    const noop = task("noop", async () => resolve());
    work({ tasks: [noop], on: program, slots: 1 }).then((started) => {
      worker = started;
    }, reject);
  });
  const milliseconds = performance.now() - before;
  const { user, system } = process.cpuUsage(cpuBefore);
  await worker?.stop();
  await close();
  return { milliseconds, cpuMilliseconds: (user + system) / 1000, loads: counts.loads };
}

await answerApart<PostgresRequest, unknown>((request) => {
  if (request.kind === "post") return post(request.url);
  return request.kind === "takeOver" ? takeOver(request.url) : loop(request);
});
