// Orchestrators and workers of the Stepflow benchmark, real and ours. Each is a process of its own, and all have the same configuration.
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "./ours.ts";
import { type Running, start } from "./processes.ts";

/** The newest release of each protocol: HTTP was removed after 0.11. */
export type Release = "0.11" | "0.13";
export type Peers = Record<Release, { readonly orchestrator: string; readonly python: string }>;

/** Fetches what is missing, so it must be called where there is a network at least once. */
export function stepflowPeers(): Peers {
  const root = fileURLToPath(new URL("../..", import.meta.url));
  const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
  const { status, stdout } = spawnSync(process.execPath, [tsx, join(root, "packages/conformance/stepflow/where.ts")], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", 2],
  });
  if (status !== 0) throw new Error("the Stepflow peers could not be fetched");
  return JSON.parse(stdout) as Peers;
}

export interface Orchestrator {
  readonly url: string;
  readonly pid: number;
  stop(): Promise<void>;
}

/** How the plugin `python` reaches its worker. */
export type Plugin = { readonly type: "grpc"; readonly queueName: "python" } | { readonly type: "stepflow"; readonly url: string };

export const QUEUE: Plugin = { type: "grpc", queueName: "python" };

export async function startOurs(folder: string, plugin: Plugin): Promise<Orchestrator> {
  const file = join(folder, "stepflow-config.yml");
  writeFileSync(file, JSON.stringify({ plugins: plugins(plugin), routes: { "/python": [{ plugin: "python" }] } }));
  return startServer(folder, ["--stepflow-config", file, "--log-level", "error"]);
}

export interface RealOptions {
  readonly program: string;
  readonly release: Release;
  readonly plugin: Plugin;
  /** In a database instead of in memory. */
  readonly durable?: boolean;
}

export async function startReal(folder: string, { program, release, plugin, durable }: RealOptions): Promise<Orchestrator> {
  const file = join(folder, "stepflow-config.yml");
  // Since 0.13 a route is a plain prefix, before it was a pattern.
  const route = release === "0.13" ? "/python" : "/python/{*component}";
  const databaseUrl = `sqlite:${join(folder, "stepflow.db")}?mode=rwc`;
  const storageConfig = durable ? { type: "sqlite", databaseUrl } : { type: "inMemory" };
  writeFileSync(file, JSON.stringify({ plugins: plugins(plugin), routes: { [route]: [{ plugin: "python" }] }, storageConfig }));
  const running = start(program, ["--port", "0", "--config", file, "--log-level", "error"], { cwd: folder });
  const line = await running.line((text) => text.startsWith('{"port"'));
  const { port } = JSON.parse(line) as { port: number };
  return { url: `http://127.0.0.1:${port}`, pid: running.pid, stop: () => kill(running) };
}

const plugins = (python: Plugin): Record<string, unknown> => ({ builtin: { type: "builtin" }, python });

export interface Worker {
  readonly pid: number;
  stop(): Promise<void>;
}

export type WorkerKind = { readonly by: "ours" } | { readonly by: "python"; readonly python: string };

const OUR_PROGRAM = fileURLToPath(new URL("./stepflow-worker.js", import.meta.url));
const PYTHON_PROGRAM = fileURLToPath(new URL("../stepflow_worker.py", import.meta.url));

/** A worker that pulls from the queue `python`, with so many slots. */
export function startPulling(kind: WorkerKind, orchestrator: Orchestrator, slots: number): Worker {
  const { host } = new URL(orchestrator.url);
  const env = {
    TRANSPORT: "grpc",
    SERVER_PID: String(orchestrator.pid),
    STEPFLOW_TASKS_URL: host,
    STEPFLOW_BLOB_URL: host,
    STEPFLOW_QUEUE_NAME: "python",
    STEPFLOW_MAX_CONCURRENT: String(slots),
    STEPFLOW_LOG_LEVEL: "ERROR",
  };
  return handle(run(kind, ["--grpc"], env));
}

/** A worker that is called; it has no limit of its own. */
export async function startCalled(kind: WorkerKind, slots: number): Promise<Worker & { readonly url: string }> {
  const env = { TRANSPORT: "http", STEPFLOW_MAX_CONCURRENT: String(slots), STEPFLOW_LOG_LEVEL: "ERROR" };
  const running = run(kind, ["--port", "0"], env);
  const { port } = JSON.parse(await running.line((text) => text.startsWith('{"port"'))) as { port: number };
  return { ...handle(running), url: `http://127.0.0.1:${port}` };
}

function run(kind: WorkerKind, args: readonly string[], env: Record<string, string>): Running {
  return kind.by === "ours" ? start(process.execPath, [OUR_PROGRAM], { env }) : start(kind.python, [PYTHON_PROGRAM, ...args], { env });
}

const handle = (running: Running): Worker => ({ pid: running.pid, stop: () => kill(running) });

/** An idle Python worker, and an orchestrator with a worker on its stream, do not end on SIGTERM. */
async function kill(running: Running): Promise<void> {
  running.child.kill("SIGKILL");
  await running.stop();
}
