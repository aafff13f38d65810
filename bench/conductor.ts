// Conductor: our worker beside the official JavaScript SDK on both servers, and our server beside the real one under the same callers.
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type ConductorServer, conductorPeers, type Peers, startOurs, startReference } from "./conductor-peers.ts";
import type { RawAnswer, RawRequest } from "./conductor-raw-side.ts";
import { type Round, type ServerFigures, type ShapesRound, summarise, summariseShapes, type WorkerCell } from "./conductor-report.ts";
import type { ShapesAnswer, ShapesRequest } from "./conductor-shapes-side.ts";
import type { WorkerAnswer, WorkerRequest } from "./conductor-worker-side.ts";
import { withFolder } from "./environment.ts";
import type { GrowthRequest } from "./growth-side.ts";
import { measureApart } from "./processes.ts";
import type { Options, Report } from "./report.ts";

/** It takes minutes, so it prints its progress. */
const say = (line: string): void => void process.stderr.write(`bench: ${line}\n`);

type ServerName = "ours" | "reference";

/**
 * How many tasks each server gets: enough for some seconds with the slower worker, the SDK, whose pauses between polls limit its rate. The warm-up
 * must have more tasks than there are slots, because the first poll fills every slot at once.
 */
interface Size {
  /** Tasks for a worker with 1, 10 and 100 slots. */
  readonly drain: readonly [number, number, number];
  readonly flow: number;
  readonly pickUps: number;
  readonly raw: number;
  readonly forks: number;
  /** `size`: iterations of the loop, and tasks of the dynamic fork. `runs`: runs of the expression, and of the call. */
  readonly shapes: Pick<ShapesRequest, "size" | "runs">;
}

const SIZES: Record<ServerName, Size> = {
  ours: { drain: [100, 1_000, 2_000], flow: 1_000, pickUps: 60, raw: 3_000, forks: 40, shapes: { size: 1_000, runs: 1_000 } },
  reference: { drain: [24, 240, 800], flow: 120, pickUps: 20, raw: 300, forks: 20, shapes: { size: 1_000, runs: 500 } },
};
const QUICK: Record<ServerName, Size> = {
  ours: { drain: [40, 200, 200], flow: 200, pickUps: 16, raw: 400, forks: 10, shapes: { size: 100, runs: 100 } },
  reference: { drain: [12, 40, 40], flow: 40, pickUps: 8, raw: 100, forks: 5, shapes: { size: 100, runs: 50 } },
};

const SLOTS = [1, 10, 100] as const;
const FLOW_SLOTS = 10;
const WARM_UP_SHARE = 0.25;
const HISTORY = { small: 1_000, large: 200_000, quick: 5_000 } as const;

export async function conductor(options: Options): Promise<Report> {
  const peers = conductorPeers();
  if (options.only === "shapes") {
    const rounds: ShapesRound[] = [];
    for (let round = 0; round < options.rounds; round++) {
      const ours = await onServer("ours", peers, (server) => measureShapes("ours", server, options));
      rounds.push({ ours, reference: await onServer("reference", peers, (server) => measureShapes("reference", server, options)) });
    }
    return summariseShapes(rounds);
  }
  const rounds: Round[] = [];
  for (let round = 0; round < options.rounds; round++) {
    const ours = await measureServer("ours", peers, options);
    const reference = await measureServer("reference", peers, options);
    rounds.push({ ours, reference });
  }
  return summarise(rounds, await measureGrowth(options));
}

async function onServer<T>(name: ServerName, peers: Peers, use: (server: ConductorServer, folder: string) => Promise<T>): Promise<T> {
  return withFolder(async (root) => {
    const folder = join(root, "server");
    await mkdir(folder);
    const server = name === "ours" ? await startOurs(folder) : await startReference(folder, peers);
    try {
      return await use(server, root);
    } finally {
      await server.stop();
    }
  });
}

/** What the server performs by itself. */
function measureShapes(name: ServerName, { url, pid }: ConductorServer, { quick }: Options): Promise<ShapesAnswer> {
  say(`${name} server: loop, dynamic fork, expressions and calls`);
  const request: ShapesRequest = { url, serverPid: pid, ...(quick ? QUICK : SIZES)[name].shapes };
  return measureApart<ShapesAnswer>("conductor-shapes-side.js", request);
}

/** Every load on one server process: with a new process for each, the reference's start would take most of the time. */
function measureServer(name: ServerName, peers: Peers, options: Options): Promise<ServerFigures> {
  const { quick } = options;
  const size = (quick ? QUICK : SIZES)[name];
  return onServer(name, peers, async (server, root) => {
    const ask = (kind: WorkerRequest["kind"], worker: WorkerRequest["worker"], concurrency: number, updateV2: boolean, total: number) => {
      say(`${name} server: ${kind}, ${worker}, ${concurrency} slots, ${updateV2 ? "v2" : "v1"}`);
      return measureApart<WorkerAnswer>("conductor-worker-side.js", {
        kind,
        worker,
        url: server.url,
        serverPid: server.pid,
        sdk: peers.sdk,
        concurrency,
        updateV2,
        total,
        warmUp: Math.round(total * WARM_UP_SHARE),
        outbox: join(root, "outbox"),
      } satisfies WorkerRequest);
    };

    say(`${name} server: ready after ${Math.round(server.readyMs)} ms, plain requests`);
    // The reference compiles itself while it works. So it is warmed up before the first figure.
    const raw = await measureApart<RawAnswer>("conductor-raw-side.js", {
      url: server.url,
      serverPid: server.pid,
      tasks: size.raw,
      warmUp: Math.round(size.raw * WARM_UP_SHARE),
      forks: size.forks,
    } satisfies RawRequest);
    const workers: WorkerCell[] = [];
    for (const updateV2 of [false, true]) {
      for (const [index, slots] of SLOTS.entries()) {
        const total = size.drain[index] as number;
        // The reference becomes faster with every task, so neither worker may always come second.
        const first = await ask("drain", "ours", slots, updateV2, total);
        const sdk = [await ask("drain", "sdk", slots, updateV2, total), await ask("drain", "sdk", slots, updateV2, total)] as const;
        const ours = [first, await ask("drain", "ours", slots, updateV2, total)] as const;
        workers.push({ slots, updateV2, total: 2 * total, ours: bothOf(ours), sdk: bothOf(sdk) });
      }
    }
    const flow = await ask("flow", "sdk", FLOW_SLOTS, true, size.flow);
    const pickUp = { ours: await ask("pick-up", "ours", 1, true, size.pickUps), sdk: await ask("pick-up", "sdk", 1, true, size.pickUps) };
    const shapes = await measureShapes(name, server, options);
    return { readyMs: server.readyMs, raw, workers, flow, pickUp, shapes, tasks: size.raw + size.flow };
  });
}

function bothOf([one, other]: readonly [WorkerAnswer, WorkerAnswer]): WorkerAnswer {
  const mean = (of: (answer: WorkerAnswer) => number): number => (of(one) + of(other)) / 2;
  return {
    perSecond: mean((answer) => answer.perSecond),
    workerCpu: mean((answer) => answer.workerCpu),
    serverCpu: mean((answer) => answer.serverCpu),
    meanMs: mean((answer) => answer.meanMs),
    p50Ms: mean((answer) => answer.p50Ms),
    p99Ms: mean((answer) => answer.p99Ms),
    lost: one.lost + other.lost,
    repeated: one.repeated + other.repeated,
  };
}

/** The same plain requests on a file with few and with many finished runs. Only ours: the reference would need an hour. */
async function measureGrowth({ quick }: Options): Promise<{ small: RawAnswer; large: RawAnswer; runs: number }> {
  const large = quick ? HISTORY.quick : HISTORY.large;
  const withHistory = (runs: number): Promise<RawAnswer> =>
    withFolder(async (folder) => {
      say(`filling a file with ${runs} finished runs`);
      await measureApart("growth-side.js", { kind: "fill", folder, runs } satisfies GrowthRequest);
      const server = await startOurs(folder);
      try {
        const tasks = (quick ? QUICK : SIZES).ours.raw;
        return await measureApart<RawAnswer>("conductor-raw-side.js", {
          url: server.url,
          serverPid: server.pid,
          tasks,
          warmUp: Math.round(tasks * WARM_UP_SHARE),
          forks: 1,
        } satisfies RawRequest);
      } finally {
        await server.stop();
      }
    });
  return { small: await withHistory(HISTORY.small), large: await withHistory(large), runs: large };
}
