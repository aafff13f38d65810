// Workers with the same components: the unchanged Python SDKs of every release, and ours. Each is a separate program.
import { fileURLToPath } from "node:url";
import type { Child } from "../src/child.ts";
import type { Stage } from "../src/stage.ts";
import { pythonWithSdk, type Release, releases } from "./fetch.ts";

export interface WorkerOptions {
  /** The file to which the component `mark` adds a line for each execution. */
  marks?: string;
  env?: Record<string, string>;
}

/** A worker that waits for a runtime to call it. */
export interface CalledWorker {
  readonly url: string;
  readonly child: Child;
}

const program = (name: string): string => fileURLToPath(new URL(`./programs/${name}`, import.meta.url));

export function pythonHttpWorker(stage: Stage, release: Release, options: WorkerOptions & { port?: number } = {}): Promise<CalledWorker> {
  return called(startPython(stage, release, ["--port", String(options.port ?? 0)], options));
}

export function ourHttpWorker(stage: Stage, options: WorkerOptions & { port?: number } = {}): Promise<CalledWorker> {
  return called(startOurs(stage, "http", { ...options, env: { PORT: String(options.port ?? 0), ...options.env } }));
}

/** The command with which an orchestrator starts our worker itself, and the complete environment of that process. */
export function ourCommand(transport: "http" | "grpc"): Record<string, unknown> {
  return { command: process.execPath, args: [program("our-worker.mjs")], env: { TRANSPORT: transport, PATH: process.env.PATH ?? "" } };
}

/** The same for `longshore work`. `--port` sets the port on which it is called; Stepflow's variables have the address of its queue. */
export function ourCommandLine(options: readonly string[] = []): Record<string, unknown> {
  const longshore = fileURLToPath(new URL("../../longshore/dist/cli/main.js", import.meta.url));
  return {
    command: process.execPath,
    args: [longshore, "work", program("our-tasks.mjs"), ...options],
    env: { PATH: process.env.PATH ?? "" },
  };
}

async function called(child: Child): Promise<CalledWorker> {
  const [, port] = await child.printed(/^\{"port": ?(\d+)\}$/m);
  return { url: `http://127.0.0.1:${port}`, child };
}

export interface PullingOptions extends WorkerOptions {
  queue?: string;
}

/** A worker that pulls its tasks over a stream. It does not report when it is ready: ask the orchestrator for its components instead. */
export function pythonGrpcWorker(stage: Stage, release: Release, address: string, options: PullingOptions = {}): Child {
  return startPython(stage, release, ["--grpc"], { ...options, env: { ...pullingFrom(address, options), ...options.env } });
}

export function ourGrpcWorker(stage: Stage, address: string, options: PullingOptions = {}): Child {
  return startOurs(stage, "grpc", { ...options, env: { ...pullingFrom(address, options), ...options.env } });
}

/** For tasks over NATS: the addresses of the NATS server and of the orchestrator that stores blobs. */
export interface NatsAddresses {
  readonly nats: string;
  readonly orchestrator: string;
}

export function pythonNatsWorker(stage: Stage, release: Release, addresses: NatsAddresses, options: WorkerOptions = {}): Child {
  return startPython(stage, release, ["--nats"], { ...options, env: { ...fetchingFrom(addresses), ...options.env } });
}

export function ourNatsWorker(stage: Stage, addresses: NatsAddresses, options: WorkerOptions = {}): Child {
  return startOurs(stage, "nats", { ...options, env: { ...fetchingFrom(addresses), ...options.env } });
}

/** The default names of workers and plugins. */
function fetchingFrom({ nats, orchestrator }: NatsAddresses): Record<string, string> {
  return { STEPFLOW_NATS_URL: nats, STEPFLOW_BLOB_URL: orchestrator };
}

function pullingFrom(address: string, { queue = "python" }: PullingOptions): Record<string, string> {
  return { STEPFLOW_TASKS_URL: address, STEPFLOW_BLOB_URL: address, STEPFLOW_QUEUE_NAME: queue };
}

function startPython(stage: Stage, release: Release, args: readonly string[], { marks, env }: WorkerOptions): Child {
  const child = stage.start(pythonWithSdk(release), [program("worker.py"), ...args], {
    name: `stepflow-py ${releases[release].sdk}`,
    cwd: stage.folder(),
    env: { STEPFLOW_LOG_LEVEL: "WARNING", ...(marks === undefined ? {} : { MARKS_FILE: marks }), ...env },
  });
  // An idle worker notices SIGTERM only when the next task arrives.
  stage.onClose(() => child.signal("SIGKILL"));
  return child;
}

function startOurs(stage: Stage, transport: string, { marks, env }: WorkerOptions): Child {
  return stage.start(process.execPath, [program("our-worker.mjs")], {
    name: `our worker over ${transport}`,
    cwd: stage.folder(),
    env: { TRANSPORT: transport, ...(marks === undefined ? {} : { MARKS_FILE: marks }), ...env },
  });
}
