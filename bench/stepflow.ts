// Stepflow: our worker beside the Python worker, our server beside the real orchestrator, workers that only wait, and one long flow.
import { withFolder } from "./environment.ts";
import { measureApart } from "./processes.ts";
import type { Options, Report } from "./report.ts";
import type { ChainAnswer, ChainRequest } from "./stepflow-chain-side.ts";
import type { IdleAnswer, IdleRequest } from "./stepflow-idle-side.ts";
import type { LoadAnswer, LoadRequest } from "./stepflow-load-side.ts";
import {
  type Orchestrator,
  type Peers,
  QUEUE,
  startCalled,
  startOurs,
  startPulling,
  startReal,
  stepflowPeers,
  type Worker,
  type WorkerKind,
} from "./stepflow-peers.ts";
import { type Round, summarise } from "./stepflow-report.ts";

interface Size {
  readonly warmUpSeconds: number;
  readonly seconds: number;
  readonly idleStreams: number;
  readonly idleSeconds: number;
  readonly steps: number;
  readonly warmUpSteps: number;
}

const FULL: Size = { warmUpSeconds: 1.5, seconds: 3, idleStreams: 1_000, idleSeconds: 10, steps: 10_001, warmUpSteps: 1_000 };
const QUICK: Size = { warmUpSeconds: 0.3, seconds: 0.7, idleStreams: 50, idleSeconds: 1, steps: 1_001, warmUpSteps: 101 };

const CONCURRENCIES = [1, 10, 100] as const;
/** What the Python worker has unless told. */
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
const python = (peers: Peers, release: "0.11" | "0.13"): WorkerKind => ({ by: "python", python: peers[release].python });

/** The same orchestrator, in memory, with one worker and then with the other; both with the same number of slots. */
async function workers(peers: Peers, size: Size): Promise<Round["workers"]> {
  const cells = [];
  for (const concurrency of CONCURRENCIES) {
    const ours = await realPulled(peers, OURS, size, concurrency);
    const sdk = await realPulled(peers, python(peers, "0.13"), size, concurrency);
    cells.push({ protocol: "gRPC", concurrency, ours, sdk });
  }
  for (const concurrency of CONCURRENCIES) {
    const ours = await realCalling(peers, OURS, size, concurrency);
    const sdk = await realCalling(peers, python(peers, "0.11"), size, concurrency);
    cells.push({ protocol: "HTTP", concurrency, ours, sdk });
  }
  return cells;
}

/** The same worker, ours over gRPC, on each server. */
async function servers(peers: Peers, size: Size): Promise<Round["servers"]> {
  const cells = [];
  for (const concurrency of CONCURRENCIES) {
    const ours = await withFolder((folder) => pulled(startOurs(folder, QUEUE), OURS, size, concurrency));
    const memory = await realPulled(peers, OURS, size, concurrency);
    const sqlite = await realPulled(peers, OURS, size, concurrency, true);
    cells.push({ concurrency, ours, memory, sqlite });
  }
  return cells;
}

function realPulled(peers: Peers, kind: WorkerKind, size: Size, concurrency: number, durable = false): Promise<LoadAnswer> {
  const program = peers["0.13"].orchestrator;
  return withFolder((folder) => pulled(startReal(folder, { program, release: "0.13", plugin: QUEUE, durable }), kind, size, concurrency));
}

async function pulled(starting: Promise<Orchestrator>, kind: WorkerKind, size: Size, concurrency: number): Promise<LoadAnswer> {
  const server = await starting;
  const worker = startPulling(kind, server, slotsFor(concurrency));
  return measure(server, worker, size, concurrency);
}

async function realCalling(peers: Peers, kind: WorkerKind, size: Size, concurrency: number): Promise<LoadAnswer> {
  return withFolder(async (folder) => {
    const worker = await startCalled(kind, slotsFor(concurrency));
    const plugin = { type: "stepflow", url: worker.url } as const;
    const server = await startReal(folder, { program: peers["0.11"].orchestrator, release: "0.11", plugin });
    return measure(server, worker, size, concurrency);
  });
}

async function measure(server: Orchestrator, worker: Worker, size: Size, concurrency: number): Promise<LoadAnswer> {
  try {
    const { warmUpSeconds, seconds } = size;
    const request: LoadRequest = { url: server.url, serverPid: server.pid, workerPid: worker.pid, concurrency, warmUpSeconds, seconds };
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
