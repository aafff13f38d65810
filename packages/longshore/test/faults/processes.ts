// The processes of a fault test: the real server and the workers, started, killed with SIGKILL, stopped and resumed by their process ids.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, createWriteStream, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pipeline } from "node:stream/promises";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { HistoryWriter } from "./history.ts";
import type { WorkerSettings } from "./raw-worker.ts";

export interface ManagedProcess {
  name: string;
  /** Starts a new life of the process. The life before must have ended. */
  start(): Promise<void>;
  /** SIGKILL: no handler of the process runs. Resolves when it is gone. */
  kill(): Promise<void>;
  /** Starts a life and kills it `afterMs` later, ready or not. */
  stumble(afterMs: number): Promise<void>;
  /** Sends SIGTERM, and waits until the process has ended by itself. Throws when it does not, or when its exit code is not 0. */
  end(): Promise<void>;
  pause(): void;
  resume(): void;
  isPaused(): boolean;
  pid(): number | undefined;
}

export interface ServerOptions {
  directory: string;
  port: number;
  data: string;
  history: HistoryWriter;
  /** What to run, by default our server with this process's Node; the flags of `longshore start` follow. */
  command?: string[] | undefined;
  /** Further flags of `longshore start`. */
  flags?: string[] | undefined;
}

const REPOSITORY = fileURLToPath(new URL("../../../..", import.meta.url));
export const SERVER_PROGRAM = join(REPOSITORY, "packages/longshore/dist/cli/main.js");
/** Speaks workflow-graph. */
const WORKER_PROGRAM = fileURLToPath(new URL("./worker-process.ts", import.meta.url));

/** A loaded machine may take seconds to start a process; one that takes this long has failed. */
const START_MS_MAX = 90_000;
/** The time for a graceful end: the server waits up to ten seconds for requests in progress. */
const END_MS_MAX = 20_000;

export function serverProcess({
  directory,
  port,
  data,
  history,
  command = [process.execPath, SERVER_PROGRAM],
  flags = [],
}: ServerOptions): ManagedProcess {
  const start = ["start", "--port", String(port), "--data", data, "--workflows", join(directory, "workflows"), "--json", ...flags];
  const [program = "", ...parameters] = [...command, ...start];
  return managed("server", history, () => {
    if (parameters.includes(SERVER_PROGRAM) && !existsSync(SERVER_PROGRAM))
      throw new Error(`${SERVER_PROGRAM} is missing: run npm run build`);
    const log = join(directory, "server.log");
    const child = spawn(program, parameters, { cwd: REPOSITORY, stdio: ["ignore", "pipe", "pipe"] });
    // Through this process, so that a limit on the server's files does not reach its log.
    return { child, ready: readyLine(child, log, keepErrors(child, log)) };
  });
}

export interface NodeOptions extends Pick<ServerOptions, "directory" | "port" | "history" | "flags"> {
  name: string;
  store: string;
  env?: Record<string, string> | undefined;
}

/** One server of a cluster, with its data in PostgreSQL. */
export function nodeProcess({ name, directory, port, store, history, flags = [], env = {} }: NodeOptions): ManagedProcess {
  const workflows = join(directory, "workflows");
  const parameters = ["start", "--port", String(port), "--store", store, "--workflows", workflows, "--json", ...flags];
  return managed(name, history, () => {
    const log = join(directory, `${name}.log`);
    const child = spawn(process.execPath, [SERVER_PROGRAM, ...parameters], {
      cwd: REPOSITORY,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return { child, ready: readyLine(child, log, keepErrors(child, log)) };
  });
}

export function workerProcess(
  settings: Omit<WorkerSettings, "history">,
  directory: string,
  history: HistoryWriter,
  program = WORKER_PROGRAM,
): ManagedProcess {
  let life = 0;
  return managed(settings.name, history, () => {
    const file = join(directory, `${settings.name}.${life}.jsonl`);
    // Each life has other random numbers, all from the one seed.
    const own: WorkerSettings = { ...settings, history: file, seed: settings.seed + 1000 * life++ };
    const log = openSync(join(directory, `${settings.name}.log`), "a");
    const child = spawn(process.execPath, ["--import", "tsx", program, JSON.stringify(own)], {
      cwd: REPOSITORY,
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    return { child, ready: Promise.resolve() };
  });
}

export interface OwnWorker {
  name: string;
  /** The arguments after `longshore work`. */
  parameters: readonly string[];
  /** In addition to the variables of this process. */
  env?: Record<string, string>;
}

/** Our own worker, as any user would start it. */
export function ownWorkerProcess({ name, parameters, env = {} }: OwnWorker, directory: string, history: HistoryWriter): ManagedProcess {
  return managed(name, history, () => {
    const log = openSync(join(directory, `${name}.log`), "a");
    const child = spawn(process.execPath, [SERVER_PROGRAM, "work", ...parameters], {
      cwd: REPOSITORY,
      env: { ...process.env, ...env },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    return { child, ready: Promise.resolve() };
  });
}

/** A program of Node on the built package, with one argument. Each life has a history of its own. It prints when it is ready. */
export function programProcess(
  name: string,
  program: string,
  settings: Record<string, unknown>,
  directory: string,
  history: HistoryWriter,
): ManagedProcess {
  let life = 0;
  return managed(name, history, () => {
    const own = { ...settings, history: join(directory, `${name}.${life++}.jsonl`) };
    const log = join(directory, `${name}.log`);
    const child = spawn(process.execPath, [program, JSON.stringify(own)], { cwd: REPOSITORY, stdio: ["ignore", "pipe", "pipe"] });
    return { child, ready: readyLine(child, log, keepErrors(child, log)) };
  });
}

/** Resolves when all that the process has ever written to standard error is in the file. */
async function keepErrors(child: ChildProcess, log: string): Promise<void> {
  // A reader of the log will notice that it is missing; the test continues.
  if (child.stderr) await pipeline(child.stderr, createWriteStream(log, { flags: "a" })).catch(() => undefined);
}

type Launch = () => { child: ChildProcess; ready: Promise<void> };

function managed(name: string, history: HistoryWriter, launch: Launch): ManagedProcess {
  let child: ChildProcess | undefined;
  let paused = false;
  const write = (kind: "process-started" | "process-killed" | "process-ended" | "process-stopped" | "process-resumed"): void =>
    history.write({ kind, name });
  const alive = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null;
  const begin = (): Promise<void> => {
    if (alive()) throw new Error(`${name} is running already`);
    const life = launch();
    child = life.child;
    paused = false;
    return life.ready;
  };
  const kill = async (): Promise<void> => {
    if (!child || !alive()) return;
    const gone = once(child, "exit");
    child.kill("SIGKILL");
    write("process-killed");
    await gone;
  };
  return {
    name,
    async start() {
      await begin();
      write("process-started");
    },
    kill,
    async stumble(afterMs) {
      const ready = begin();
      // A life that is to be cut short never becomes ready.
      ready.catch(() => undefined);
      await wait(afterMs);
      await kill();
    },
    async end() {
      if (!child || !alive()) return;
      const [code, signal] = (await endOf(child)) as [number | null, string | null];
      write("process-ended");
      if (code !== 0) throw new Error(`${name} was asked to end and ended with ${signal ?? code}`);
    },
    pause() {
      if (!alive() || paused) return;
      child?.kill("SIGSTOP");
      paused = true;
      write("process-stopped");
    },
    resume() {
      if (!alive() || !paused) return;
      write("process-resumed");
      child?.kill("SIGCONT");
      paused = false;
    },
    isPaused: () => paused,
    pid: () => child?.pid,
  };
}

async function endOf(child: ChildProcess): Promise<unknown[]> {
  const gone = once(child, "exit", { signal: AbortSignal.timeout(END_MS_MAX) });
  child.kill("SIGTERM");
  try {
    return await gone;
  } catch {
    throw new Error(`The process ${child.pid} was asked to end and did not in ${END_MS_MAX} ms`);
  }
}

/** Waits for the line `{"ready":true,...}`. When a server ends or stays silent instead, the error names its log. */
function readyLine(child: ChildProcess, log: string, logged: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => {
      child.kill("SIGKILL");
      reject(new Error(`A process did not become ready: ${why}; see ${log}`));
    };
    const timer = setTimeout(() => fail(`nothing said in ${START_MS_MAX} ms`), START_MS_MAX);
    const ended = (code: number | null, signal: string | null): void => {
      clearTimeout(timer);
      // A listener may read its last output at once.
      void logged.then(() => fail(`it ended with ${signal ?? code}`));
    };
    child.once("exit", ended);
    if (!child.stdout) return fail("it has no output");
    createInterface({ input: child.stdout }).on("line", (line) => {
      if (!line.includes('"ready":true')) return;
      clearTimeout(timer);
      child.off("exit", ended);
      resolve();
    });
  });
}
