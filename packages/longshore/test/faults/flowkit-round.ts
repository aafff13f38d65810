// One round of the fault test on FlowKit: a real Kafka, our coordinator and our workers as separate processes. Graphs are submitted at a
// constant rate while all processes are killed, also the broker. Then everything must end, and every batch must count once.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { ClusterOptions } from "../support/cluster.ts";
import { JavaKafka, JavaMongo } from "../support/java-service.ts";
import { freePort } from "../support/port.ts";
import { type FaultCounts, killAgainAndAgain, planFaults, playFaults } from "./chaos.ts";
import { describeViolations } from "./checker.ts";
import { openClusterServer } from "./cluster-server.ts";
import { checkGraphs, type FinalGraph, type FinalPart } from "./flowkit-checker.ts";
import { graphOf, type Shape } from "./flowkit-shape.ts";
import { type HistoryWriter, openHistory, readHistory } from "./history.ts";
import { type ManagedProcess, programProcess, serverProcess } from "./processes.ts";
import { NO_FAULTS } from "./round.ts";
import { until } from "./until.ts";

export interface FlowkitRound {
  seed: number;
  durationMs: number;
  graphs: number;
  workers: number;
  shape: Shape;
  /** Where artifacts are kept: by our server, or in MongoDB. */
  store: "own" | "mongo";
  counts: Partial<FaultCounts>;
  /** The shortest and longest time before the broker is killed. Absent: it is not killed. */
  brokerLifeMs?: [number, number];
  /** Without a broker, on the server's own bus. */
  ownBus?: boolean;
  /** Several servers instead of one. */
  cluster?: Pick<ClusterOptions, "postgres" | "nodes">;
}

const WORKER_PROGRAM = fileURLToPath(new URL("./flowkit-worker.mjs", import.meta.url));
const ROLES = { make: "make", cut: "cut", take: "take", join: "join" };
const LEASE_SEC = 3;
const BEAT_SEC = 0.5;
/** A command in a partition of a killed worker is sent again to others. */
const OFFER_SEC = 2;
const SLOTS = 2;
/** Kafka takes a partition from a killed worker after ten seconds; several of those may follow each other. */
const END_MS_MAX = 180_000;
/** A server that was killed is back after about a second. */
const ANSWER_MS_MAX = 60_000;

export interface FlowkitVerdict {
  graphs: number;
  batches: number;
  /** Batches that were processed more than once, because their worker was killed. */
  repeated: number;
  kills: number;
}

export async function playFlowkitRound(round: FlowkitRound): Promise<FlowkitVerdict> {
  const arena = await openFlowkitArena(round);
  let passed = false;
  try {
    const verdict = await arena.play();
    passed = true;
    process.stdout.write(`faults: FlowKit, artifacts in ${round.store}: ${JSON.stringify(verdict)}\n`);
    return verdict;
  } finally {
    await arena.close({ keepFiles: !passed });
  }
}

async function openFlowkitArena(round: FlowkitRound) {
  const directory = mkdtempSync(join(tmpdir(), "longshore-faults-"));
  mkdirSync(join(directory, "workflows"));
  const history = openHistory(join(directory, "chaos.0.jsonl"));
  const [kafka, mongo] = await Promise.all([
    round.ownBus ? undefined : JavaKafka.start(),
    round.store === "mongo" ? JavaMongo.start() : undefined,
  ]);
  const config = join(directory, "flowkit.json");
  writeFileSync(config, JSON.stringify({ worker_types: Object.values(ROLES), offer_sec: OFFER_SEC, lease_ttl_sec: LEASE_SEC }));
  const flags = [...(kafka === undefined ? [] : ["--flowkit-brokers", kafka.broker]), "--flowkit-config", config];
  if (mongo !== undefined) flags.push("--flowkit-mongo", `${mongo.url}/flowkit`);
  const cluster = round.cluster && (await openClusterServer({ ...round.cluster, directory, history, flags }));
  const port = cluster?.port ?? (await freePort());
  const url = `http://127.0.0.1:${port}`;
  const server = cluster?.server ?? serverProcess({ directory, port, data: join(directory, "data"), history, flags });
  const store = mongo === undefined ? { url } : { mongo: `${mongo.url}/flowkit` };
  const bus = kafka === undefined ? {} : { brokers: kafka.broker };
  const settings = { ...bus, ...store, roles: ROLES, slots: SLOTS, leaseTtlSec: LEASE_SEC, hbIntervalSec: BEAT_SEC };
  const workers = Array.from({ length: round.workers }, (_, index) => {
    const name = `worker-${index}`;
    return programProcess(name, WORKER_PROGRAM, { ...settings, ms: round.shape.ms, workerId: name }, directory, history);
  });
  return {
    play: () => play(round, { directory, url, kafka, server, workers, history }),
    async close({ keepFiles }: { keepFiles: boolean }) {
      await Promise.all([...workers, server].map((process) => process.kill()));
      await Promise.all([cluster?.close(), kafka?.remove(), mongo?.remove()]);
      history.close();
      if (!keepFiles) rmSync(directory, { recursive: true });
    },
  };
}

interface FlowkitArena {
  directory: string;
  url: string;
  kafka: JavaKafka | undefined;
  server: ManagedProcess;
  workers: ManagedProcess[];
  history: HistoryWriter;
}

async function play(round: FlowkitRound, arena: FlowkitArena): Promise<FlowkitVerdict> {
  const { seed, durationMs, graphs, shape, brokerLifeMs } = round;
  const { directory, url, kafka, server, workers, history } = arena;
  await server.start();
  await Promise.all(workers.map((worker) => worker.start()));
  const ids: string[] = [];
  const submitAll = async (): Promise<void> => {
    for (let index = 0; index < graphs; index++) {
      const { task_id } = await call<{ task_id: string }>(url, "/flowkit/v1/tasks", { params: {}, graph: graphOf(shape, ROLES) });
      history.write({ kind: "graph-acknowledged", task: task_id, shape: JSON.stringify(shape) });
      ids.push(task_id);
      await pause(durationMs / graphs);
    }
  };
  const counts = { ...NO_FAULTS, ...round.counts };
  const faults = planFaults({ seed, durationMs, workers: workers.length, links: 0, termMs: LEASE_SEC * 1000, counts });
  const over = new AbortController();
  const beside =
    brokerLifeMs === undefined || kafka === undefined ? undefined : killAgainAndAgain("Kafka", kafka, seed, brokerLifeMs)(over.signal);
  const targets = { server, workers, links: [], cancelOne: async () => {}, note: () => {} };
  await Promise.all([submitAll(), playFaults(faults, seed, targets)]).finally(() => over.abort());
  await beside;
  const final = await untilEnded(url, ids);
  const told = readHistory(directory);
  const violations = checkGraphs(told, { shape, fenced: round.store === "own", graphs: final });
  if (violations.length > 0) {
    throw new Error(`${violations.length} broken promises, evidence in ${directory}\n${describeViolations(violations.slice(0, 20))}`);
  }
  const processed = told.filter((entry) => entry.kind === "batch-processed");
  const batches = final.reduce((sum, graph) => sum + [...graph.parts.values()].reduce((count, parts) => count + parts.length, 0), 0);
  const kills = told.filter((entry) => entry.kind === "process-killed").length;
  return { graphs: final.length, batches, repeated: processed.length - batches, kills };
}

async function untilEnded(url: string, ids: readonly string[]): Promise<FinalGraph[]> {
  const open = new Set(ids);
  let seen = "";
  await until(`the end of ${ids.length} graphs`, END_MS_MAX, async () => {
    for (const id of open) {
      const document = await call<TaskDocument>(url, `/flowkit/v1/tasks/${id}`);
      seen = JSON.stringify(
        document.graph.nodes.map(({ node_id, status, attempt_epoch, last_error }) => [node_id, status, attempt_epoch, last_error]),
      );
      if (document.status === "running" || document.status === "queued") return false;
      open.delete(id);
    }
    return true;
  }).catch((error: Error) => {
    throw new Error(`${error.message}; ${open.size} are open, the first with ${seen}`);
  });
  return Promise.all(ids.map((id) => finalOf(url, id)));
}

interface TaskDocument {
  status: string;
  graph: { nodes: { node_id: string; status: string; attempt_epoch: number; last_error?: string; stats: { count?: number } }[] };
}

interface ArtifactsAnswer {
  items: { batch_uid: string; attempt_epoch: number; sequence: number; meta: { skus: string[]; token: string } }[];
  next: number | null;
}

async function finalOf(url: string, id: string): Promise<FinalGraph> {
  const { status, graph } = await call<TaskDocument>(url, `/flowkit/v1/tasks/${id}`);
  const parts = new Map<string, FinalPart[]>();
  for (const node of ["u", "d", "e", "j"]) parts.set(node, await partsOf(url, id, node));
  return { id, status, parts, sum: graph.nodes.find(({ node_id }) => node_id === "d")?.stats.count };
}

async function partsOf(url: string, id: string, node: string): Promise<FinalPart[]> {
  const parts: FinalPart[] = [];
  for (let after = 0; ; ) {
    const { items, next } = await call<ArtifactsAnswer>(url, `/flowkit/v1/tasks/${id}/artifacts?node=${node}&after=${after}&limit=1000`);
    parts.push(
      ...items.map(({ batch_uid: uid, attempt_epoch: epoch, sequence, meta: { skus: items, token } }) => ({
        uid,
        epoch,
        sequence,
        items,
        token,
      })),
    );
    if (next === null || items.length === 0) return parts;
    after = next;
  }
}

/** Asks until there is an answer: the server may be down. */
async function call<Answer>(url: string, path: string, body?: unknown): Promise<Answer> {
  const request = body === undefined ? {} : { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  return until(`an answer to ${path}`, ANSWER_MS_MAX, async () => {
    const response = await fetch(`${url}${path}`, request).catch(() => undefined);
    if (response === undefined || response.status >= 500) return undefined;
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} answered ${response.status}: ${text}`);
    return JSON.parse(text) as Answer & object;
  }) as Promise<Answer>;
}
