// Stepflow: our worker and the Python worker, our server and the real orchestrator, workers that only wait, and one long flow.
import { withFolder } from "./environment.ts";
import { measureApart } from "./processes.ts";
import type { Options, Report } from "./report.ts";
import type { ChainAnswer, ChainRequest } from "./stepflow-chain-side.ts";
import type { IdleAnswer, IdleRequest } from "./stepflow-idle-side.ts";
import type { LoadAnswer, LoadRequest, WarmUp } from "./stepflow-load-side.ts";
import {
  type Orchestrator,
  type Peers,
  type Plugin,
  QUEUE,
  startCalled,
  startOurs,
  startPulling,
  startReal,
  stepflowPeers,
  type Worker,
  type WorkerKind,
} from "./stepflow-peers.ts";
import { PROTOCOLS, type Protocol, type Round, summarise } from "./stepflow-report.ts";

interface Size {
  readonly warmUp: WarmUp;
  readonly seconds: number;
  readonly idleStreams: number;
  readonly idleSeconds: number;
  readonly steps: number;
  readonly warmUpSteps: number;
}

const FULL: Size = {
  warmUp: { seconds: 1.5, runs: 3_000, secondsMax: 6 },
  seconds: 3,
  idleStreams: 1_000,
  idleSeconds: 30,
  steps: 10_001,
  warmUpSteps: 1_000,
};
const QUICK: Size = {
  warmUp: { seconds: 0.3, runs: 0, secondsMax: 0.3 },
  seconds: 0.7,
  idleStreams: 50,
  idleSeconds: 1,
  steps: 1_001,
  warmUpSteps: 101,
};

const CONCURRENCIES = [1, 10, 100] as const;
/** The default of the Python worker. */
const SLOTS_MIN = 4;
const slotsFor = (concurrency: number): number => Math.max(SLOTS_MIN, concurrency);

export async function stepflow({ rounds: count, quick, only }: Options): Promise<Report> {
  const peers = stepflowPeers();
  const size = quick ? QUICK : FULL;
  const wants = (part: keyof Round): boolean => only === undefined || only === part;
  const rounds: Round[] = [];
  for (let round = 0; round < count; round++) {
    rounds.push({
      workers: wants("workers") ? await workers(peers, size) : [],
      servers: wants("servers") ? await servers(peers, size) : [],
      idle: wants("idle") ? await idle(peers, size) : undefined,
      chain: wants("chain") ? await chain(peers, size) : undefined,
    });
  }
  return summarise(rounds, size.steps);
}

const OURS: WorkerKind = { by: "ours" };

/** What a load needs: its protocol, and the two sides of it. */
interface Pair {
  readonly protocol: Protocol;
  readonly server: "ours" | "memory" | "sqlite";
  readonly worker: "ours" | "python";
}

/**
 * The same server with one worker and then with the other, both with as many slots. The real orchestrator runs in memory; then comes ours.
 */
async function workers(peers: Peers, size: Size): Promise<Round["workers"]> {
  const cells = [];
  for (const server of ["memory", "ours"] as const) {
    for (const protocol of PROTOCOLS) {
      for (const concurrency of CONCURRENCIES) {
        const ours = await load(peers, { protocol, server, worker: "ours" }, size, concurrency);
        const sdk = await load(peers, { protocol, server, worker: "python" }, size, concurrency);
        cells.push({ server, protocol, concurrency, ours, sdk });
      }
    }
  }
  return cells;
}

/** Our worker on each server. For comparison, the real orchestrator in memory with its own worker. */
async function servers(peers: Peers, size: Size): Promise<Round["servers"]> {
  const cells = [];
  for (const protocol of PROTOCOLS) {
    for (const concurrency of CONCURRENCIES) {
      const ours = await load(peers, { protocol, server: "ours", worker: "ours" }, size, concurrency);
      const pair = await load(peers, { protocol, server: "memory", worker: "python" }, size, concurrency);
      const memory = await load(peers, { protocol, server: "memory", worker: "ours" }, size, concurrency);
      const sqlite = await load(peers, { protocol, server: "sqlite", worker: "ours" }, size, concurrency);
      cells.push({ protocol, concurrency, ours, memory, sqlite, pair });
    }
  }
  return cells;
}

function load(peers: Peers, { protocol, server: which, worker: by }: Pair, size: Size, concurrency: number): Promise<LoadAnswer> {
  // HTTP was removed after 0.11.
  const release = protocol === "gRPC" ? "0.13" : "0.11";
  const { orchestrator: program, python } = peers[release];
  const kind: WorkerKind = by === "ours" ? OURS : { by, python };
  const slots = slotsFor(concurrency);
  return withFolder(async (folder) => {
    const begin = (plugin: Plugin): Promise<Orchestrator> =>
      which === "ours" ? startOurs(folder, plugin) : startReal(folder, { program, release, plugin, durable: which === "sqlite" });
    if (protocol === "gRPC") {
      const server = await begin(QUEUE);
      return measure(server, startPulling(kind, server, slots), size, concurrency);
    }
    const worker = await startCalled(kind, slots);
    return measure(await begin({ type: "stepflow", url: worker.url }), worker, size, concurrency);
  });
}

async function measure(server: Orchestrator, worker: Worker, size: Size, concurrency: number): Promise<LoadAnswer> {
  try {
    const { warmUp, seconds } = size;
    const request: LoadRequest = { url: server.url, serverPid: server.pid, workerPid: worker.pid, concurrency, warmUp, seconds };
    return await measureApart<LoadAnswer>("stepflow-load-side.js", request);
  } finally {
    // The worker first: it would report the loss of its server.
    await worker.stop();
    await server.stop();
  }
}

async function idle(peers: Peers, size: Size): Promise<NonNullable<Round["idle"]>> {
  const wait = async (starting: Promise<Orchestrator>): Promise<IdleAnswer> => {
    const server = await starting;
    try {
      const request: IdleRequest = { url: server.url, serverPid: server.pid, streams: size.idleStreams, seconds: size.idleSeconds };
      return await measureApart<IdleAnswer>("stepflow-idle-side.js", request);
    } finally {
      await server.stop();
    }
  };
  const program = peers["0.13"].orchestrator;
  return {
    streams: size.idleStreams,
    ours: await withFolder((folder) => wait(startOurs(folder, QUEUE))),
    real: await withFolder((folder) => wait(startReal(folder, { program, release: "0.13", plugin: QUEUE }))),
  };
}

async function chain(peers: Peers, size: Size): Promise<NonNullable<Round["chain"]>> {
  const last = size.steps - 1;
  const length = Math.floor(last / 10 / 100) * 100;
  const spans = [
    { from: 100, to: 100 + length },
    { from: last - length, to: last },
  ];
  const walk = async (starting: Promise<Orchestrator>): Promise<ChainAnswer> => {
    const server = await starting;
    const worker = startPulling(OURS, server, SLOTS_MIN);
    try {
      const request: ChainRequest = { url: server.url, steps: size.steps, warmUpSteps: size.warmUpSteps, spans };
      return await measureApart<ChainAnswer>("stepflow-chain-side.js", request);
    } finally {
      await worker.stop();
      await server.stop();
    }
  };
  const program = peers["0.13"].orchestrator;
  return {
    ours: await withFolder((folder) => walk(startOurs(folder, QUEUE))),
    real: await withFolder((folder) => walk(startReal(folder, { program, release: "0.13", plugin: QUEUE }))),
  };
}
