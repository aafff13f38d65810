// The processes of one document: each runs in its own process group, so that ending it also ends what it started.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as wait } from "node:timers/promises";

// A documentation example must not need longer than this.
const RUN_MS_MAX = 120_000;
const READY_MS_MAX = 30_000;
const READY_POLL_MS = 50;
const STOP_MS_MAX = 10_000;
// A process that left the group may hold the pipes open without end; its output is not the block's.
const LAST_OUTPUT_MS_MAX = 1_000;
// Enough for any example; a block that prints without end must not fill the memory.
const OUTPUT_CHARS_MAX = 1_000_000;

export interface Command {
  program: string;
  args: string[];
  cwd: string;
  env: NodeJS.ProcessEnv;
}

interface Running {
  child: ChildProcess;
  output: () => string;
  exited: Promise<number>;
}

/** Runs to the end and answers the output; throws with the output when the exit code is not 0. */
export async function runToEnd(command: Command): Promise<string> {
  const running = start(command);
  const timer = setTimeout(() => killGroup(running.child, "SIGKILL"), RUN_MS_MAX);
  try {
    const code = await running.exited;
    if (code !== 0) throw new Error(`ended with ${code} and printed:\n${running.output()}`);
    return running.output();
  } finally {
    clearTimeout(timer);
  }
}

/** What a document leaves running, ended together in reverse order. */
export class Background {
  readonly #running: Running[] = [];

  /** Starts a command and waits until `isReady` accepts its output so far. */
  async start(command: Command, isReady: (output: string) => boolean | Promise<boolean>): Promise<string> {
    const running = start(command);
    this.#running.push(running);
    const deadline = Date.now() + READY_MS_MAX;
    while (!(await isReady(running.output()))) {
      if (running.child.exitCode !== null || running.child.signalCode !== null) {
        throw new Error(`ended before it was ready and printed:\n${running.output()}`);
      }
      if (Date.now() > deadline) throw new Error(`was not ready within ${READY_MS_MAX / 1000} s and printed:\n${running.output()}`);
      await wait(READY_POLL_MS);
    }
    return running.output();
  }

  async stop(): Promise<void> {
    for (const { child, exited } of this.#running.splice(0).reverse()) {
      killGroup(child, "SIGTERM");
      const timer = setTimeout(() => killGroup(child, "SIGKILL"), STOP_MS_MAX);
      await exited;
      clearTimeout(timer);
    }
  }
}

function start({ program, args, cwd, env }: Command): Running {
  const child = spawn(program, args, { cwd, env, detached: true, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const collect = (chunk: Buffer): void => {
    if (output.length < OUTPUT_CHARS_MAX) output += chunk.toString("utf8");
  };
  child.stdout.on("data", collect);
  child.stderr.on("data", collect);
  const onParentExit = (): void => killGroup(child, "SIGKILL");
  process.once("exit", onParentExit);
  const closed = once(child, "close");
  const exited = Promise.race([
    once(child, "exit").then(async ([code, signal]) => {
      process.removeListener("exit", onParentExit);
      // What the command left behind in its group would hold the pipes open, and the rest of the output is read only when they close.
      killGroup(child, "SIGKILL");
      await Promise.race([closed, wait(LAST_OUTPUT_MS_MAX, undefined, { ref: false })]);
      return (code as number | null) ?? (signal === null ? 1 : 128);
    }),
    once(child, "error").then(([error]) => {
      output += String(error);
      return 127;
    }),
  ]);
  return { child, output: () => output, exited };
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // The group is already gone, which is what was wanted.
  }
}
