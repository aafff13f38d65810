// Child processes of a benchmark: started on demand, read for their CPU and memory, always stopped by their own id.
import { type ChildProcess, fork, spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

// A server that does not end on SIGTERM within this time is killed, so that a round cannot hang.
const STOP_TIMEOUT_MS = 10_000;
const READY_TIMEOUT_MS = 30_000;
// USER_HZ of the Linux interface to user space; fixed at 100 on every architecture Node runs on.
const MICROSECONDS_PER_TICK = 10_000;

export interface Running {
  readonly pid: number;
  readonly child: ChildProcess;
  /** Resolves when a line of standard output passes the test. Rejects when the process ends before. */
  line(test: (line: string) => boolean, timeoutMs?: number): Promise<string>;
  stop(): Promise<void>;
}

export interface StartOptions {
  readonly cwd?: string;
  readonly env?: Record<string, string>;
  readonly uid?: number;
  readonly gid?: number;
  /** How it is stopped. Default: SIGTERM. */
  readonly stopWith?: NodeJS.Signals;
}

export function start(command: string, args: readonly string[], options: StartOptions = {}): Running {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    uid: options.uid,
    gid: options.gid,
    stdio: ["ignore", "pipe", "pipe"],
  });
  return follow(child, command, options.stopWith ?? "SIGTERM");
}

function follow(child: ChildProcess, name: string, stopWith: NodeJS.Signals): Running {
  const lines: string[] = [];
  const errors: string[] = [];
  const listeners = new Set<(line: string) => void>();
  const failures = new Set<(error: Error) => void>();
  const exited = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const fail = (reason: string) => {
    const error = new Error(`${name} ${reason}${errors.length > 0 ? `:\n${errors.slice(-20).join("\n")}` : ""}`);
    for (const failure of failures) failure(error);
  };
  child.once("error", (error) => fail(`could not be started (${error.message})`));
  child.once("exit", (code, signal) => fail(`ended early with ${signal ?? code}`));
  if (child.stderr) createInterface({ input: child.stderr }).on("line", (line) => errors.push(line));
  if (child.stdout) {
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(line);
      for (const listener of listeners) listener(line);
    });
  }
  const killOnExit = () => child.kill("SIGKILL");
  process.once("exit", killOnExit);
  void exited.then(() => process.off("exit", killOnExit));

  return {
    pid: child.pid ?? -1,
    child,
    line: (test, timeoutMs = READY_TIMEOUT_MS) =>
      new Promise((resolve, reject) => {
        const seen = lines.find(test);
        if (seen !== undefined) return resolve(seen);
        const timer = setTimeout(() => settle(() => reject(new Error(`${name} was not ready after ${timeoutMs} ms`))), timeoutMs);
        const listener = (line: string) => {
          if (test(line)) settle(() => resolve(line));
        };
        const failure = (error: Error) => settle(() => reject(error));
        const settle = (act: () => void) => {
          clearTimeout(timer);
          listeners.delete(listener);
          failures.delete(failure);
          act();
        };
        listeners.add(listener);
        failures.add(failure);
      }),
    stop: async () => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill(stopWith);
      const timer = setTimeout(() => child.kill("SIGKILL"), STOP_TIMEOUT_MS);
      await exited;
      clearTimeout(timer);
    },
  };
}

/** Runs one side of a comparison in a fresh Node process: no side must meet the other's heap or compiled code. */
export async function measureApart<T>(module: string, request: unknown): Promise<T> {
  const child = fork(fileURLToPath(new URL(`./${module}`, import.meta.url)), [JSON.stringify(request)], { stdio: ["ignore", 2, 2, "ipc"] });
  const killOnExit = () => child.kill("SIGKILL");
  process.once("exit", killOnExit);
  try {
    return await new Promise<T>((resolve, reject) => {
      let answer: T | undefined;
      child.once("message", (message) => {
        answer = message as T;
      });
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        if (answer !== undefined && code === 0) resolve(answer);
        else reject(new Error(`${module} ended with ${signal ?? code} while measuring ${JSON.stringify(request)}`));
      });
    });
  } finally {
    process.removeListener("exit", killOnExit);
  }
}

/** The other end of `measureApart`: reads the request, answers once, and ends. */
export async function answerApart<Request, Answer>(measure: (request: Request) => Promise<Answer>): Promise<void> {
  const answer = await measure(JSON.parse(process.argv[2] ?? "null") as Request);
  await new Promise<void>((resolve, reject) => process.send?.(answer, (error: Error | null) => (error ? reject(error) : resolve())));
  process.exit(0);
}

export function ownCpuMicroseconds(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

/** User and system time of another process with all its threads, to the clock tick. */
export function cpuMicroseconds(pid: number): number {
  const { own } = ticksOf(pid);
  return own * MICROSECONDS_PER_TICK;
}

/** The same of a process and its children, those that have ended included. */
export function familyCpuMicroseconds(pid: number): number {
  const { own, ended } = ticksOf(pid);
  let ticks = own + ended;
  for (const child of readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ")) {
    if (child !== "") ticks += ticksOf(Number(child)).own;
  }
  return ticks * MICROSECONDS_PER_TICK;
}

/**
 * User and system time of a process, and of its children that have ended. For a process that has ended: none, because its parent has it.
 */
function ticksOf(pid: number): { readonly own: number; readonly ended: number } {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch {
    return { own: 0, ended: 0 };
  }
  // The second field is the command in brackets and may hold spaces, so the count starts after the last bracket.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { own: Number(fields[11]) + Number(fields[12]), ended: Number(fields[13]) + Number(fields[14]) };
}

/** The same to the nanosecond, for short spans. The time of a thread that ends between two readings is lost. */
export function fineCpuMicroseconds(pid: number): number {
  let nanoseconds = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    nanoseconds += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "latin1").split(" ")[0]);
  }
  return nanoseconds / 1000;
}

export function residentBytes(pid: number): number {
  const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"));
  return Number(match?.[1] ?? Number.NaN) * 1024;
}
