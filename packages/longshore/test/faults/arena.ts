// The place of a fault test: a directory with a server's data, every process's history and log, and the processes themselves.
import { randomInt } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../src/cli/client.ts";
import { liveSource } from "../../src/cli/verify-live.ts";
import { verify } from "../../src/verify/verify.ts";
import type { ClusterOptions } from "../support/cluster.ts";
import { freePort } from "../support/port.ts";
import type { createWorkflow } from "./api.ts";
import { check, describeViolations } from "./checker.ts";
import { type Client, openClient } from "./client.ts";
import { openClusterServer } from "./cluster-server.ts";
import { type Entry, type HistoryWriter, openHistory, readHistory } from "./history.ts";
import { type Link, openLink } from "./link.ts";
import { type ManagedProcess, ownWorkerProcess, type ServerOptions, serverProcess, workerProcess } from "./processes.ts";
import type { WorkerSettings } from "./raw-worker.ts";
import type { FinalState } from "./story.ts";

export interface Arena {
  directory: string;
  url: string;
  server: ManagedProcess;
  workers: ManagedProcess[];
  links: (Link & { name: string })[];
  client: Client;
  /** The actions of the test itself, for the history. */
  note: HistoryWriter["write"];
  addWorker(habits: WorkerHabits, options?: { url?: string }): ManagedProcess;
  /** One of our own workers, with the flags of `longshore work`. */
  addShellWorker(...flags: string[]): ManagedProcess;
  /** The same, with any arguments of `longshore work`, and environment variables. */
  addOwnWorker(parameters: readonly string[], env?: Record<string, string>): ManagedProcess;
  /** A connection to the server that can fail. */
  addLink(): Promise<Link>;
  /** Reads the histories, asks the server how the runs ended, and throws what the checker finds. */
  judge(runIds: readonly string[]): Promise<Verdict>;
  /** Ends every process. The files stay behind when the test failed, as evidence. */
  close(options: { keepFiles: boolean }): Promise<void>;
}

export interface Verdict {
  final: FinalState;
  history: Entry[];
}

export type WorkerHabits = Omit<WorkerSettings, "url" | "name" | "history">;

/** Another protocol than workflow-graph: how its server is configured, how workflows are defined, and the program of its faulty worker. */
export interface Wire {
  flags(directory: string): string[];
  define: typeof createWorkflow;
  worker: string;
  /** Further settings of the worker. */
  habits?: Record<string, unknown>;
}

export interface ArenaOptions extends Pick<ServerOptions, "command"> {
  data?: string;
  wire?: Wire;
  /** Several servers instead of one, with their data in PostgreSQL. */
  cluster?: Pick<ClusterOptions, "postgres" | "nodes" | "own">;
}

export async function openArena(other: ArenaOptions = {}): Promise<Arena> {
  const directory = mkdtempSync(join(tmpdir(), "longshore-faults-"));
  mkdirSync(join(directory, "workflows"));
  const chaos = openHistory(join(directory, "chaos.0.jsonl"));
  const flags = other.wire?.flags(directory) ?? [];
  const cluster = other.cluster && (await openClusterServer({ ...other.cluster, directory, history: chaos, flags }));
  const port = cluster?.port ?? (await freePort());
  const url = `http://127.0.0.1:${port}`;
  const data = other.data ?? join(directory, "data");
  const server = cluster?.server ?? serverProcess({ directory, port, data, history: chaos, command: other.command, flags });
  const client = openClient(url, join(directory, "client.0.jsonl"), other.wire?.define);
  const workers: ManagedProcess[] = [];
  const links: (Link & { name: string })[] = [];
  const addOwnWorker: Arena["addOwnWorker"] = (parameters, env = {}) => {
    const worker = ownWorkerProcess({ name: `worker-${workers.length}`, parameters, env }, directory, chaos);
    workers.push(worker);
    return worker;
  };
  return {
    directory,
    url,
    server,
    workers,
    links,
    client,
    note: (happening) => chaos.write(happening),
    addWorker(habits, options = {}) {
      const settings = { ...habits, ...other.wire?.habits, url: options.url ?? url, name: `worker-${workers.length}` };
      const worker = workerProcess(settings, directory, chaos, other.wire?.worker);
      workers.push(worker);
      return worker;
    },
    addShellWorker: (...flags) => addOwnWorker(["--shell", "--on", url, "--worker-id", `worker-${workers.length}`, ...flags]),
    addOwnWorker,
    async addLink() {
      const link = { ...(await openLink(port)), name: `link-${links.length}` };
      links.push(link);
      return link;
    },
    async judge(runIds) {
      const final = await client.readFinal(runIds);
      const history = readHistory(directory);
      const violations = check(history, final);
      if (violations.length > 0)
        throw new Error(`${violations.length} broken promises, evidence in ${directory}\n${describeViolations(violations)}`);
      // A model server has no rows.
      if (other.command === undefined) await verifyLive(url);
      return { final, history };
    },
    async close({ keepFiles }) {
      await Promise.all([...workers, server].map((process) => process.kill()));
      await cluster?.close();
      await Promise.all(links.map((link) => link.close()));
      client.close();
      chaos.close();
      if (!keepFiles) rmSync(directory, { recursive: true });
    },
  };
}

/** The published checker must agree: it reads the server's rows, which the workers never see. */
async function verifyLive(url: string): Promise<void> {
  const { findings } = await verify(liveSource(connect({ on: url })), { recorded: [], now: 0 });
  if (findings.length > 0) throw new Error(`longshore verify found: ${JSON.stringify(findings, null, 2)}`);
}

/** Opens an arena with a running server for one test, and always closes it. */
export async function inArena(body: (arena: Arena) => Promise<void>, other?: Parameters<typeof openArena>[0]): Promise<void> {
  const arena = await openArena(other);
  let passed = false;
  try {
    await arena.server.start();
    await body(arena);
    passed = true;
  } finally {
    await arena.close({ keepFiles: !passed });
  }
}

/** The seed from LONGSHORE_FAULT_SEED, or a new one; it is always printed, so that a failure can be repeated. */
export function faultSeed(): number {
  const given = process.env.LONGSHORE_FAULT_SEED;
  const seed = given === undefined ? randomInt(1_000_000_000) : Number(given);
  process.stdout.write(`faults: seed ${seed} (LONGSHORE_FAULT_SEED=${seed} plays the same schedule again)\n`);
  return seed;
}
