// Runs a program for a batch. It leads its own process group, so that a cancel also reaches its children.

import { spawn } from "node:child_process";
import type { Clock } from "../../../core/clock.ts";
import { ProcessGroups } from "../../../core/process-groups.ts";

export interface SubprocessOptions {
  /** The time between SIGTERM and SIGKILL. Default: 5 s. */
  readonly grace_ms?: number;
  readonly graceMs?: number;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

const graceMsDefault = 5_000;

/** Returns the exit code; 128 for a program that was ended by a signal. Its output goes to the worker's output. */
export function runSubprocess(
  [program, ...args]: readonly string[],
  options: SubprocessOptions & { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<number> {
  const { clock, signal, cwd, env } = options;
  if (program === undefined) return Promise.reject(new TypeError("run_subprocess needs a program"));
  if (signal.aborted) return Promise.reject(signal.reason);
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { detached: true, stdio: ["ignore", "inherit", "inherit"], cwd, env });
    const groups = new ProcessGroups();
    groups.add(child.pid);
    let disarm = () => {};
    const abort = () => {
      groups.kill(child.pid, "SIGTERM");
      disarm = clock.at(clock.now() + (options.grace_ms ?? options.graceMs ?? graceMsDefault), () => groups.kill(child.pid, "SIGKILL"));
    };
    signal.addEventListener("abort", abort, { once: true });
    const over = () => {
      disarm();
      groups.remove(child.pid);
      signal.removeEventListener("abort", abort);
    };
    child.once("error", (error) => {
      over();
      reject(error);
    });
    child.once("exit", (code) => {
      over();
      if (signal.aborted) reject(signal.reason);
      else resolve(code ?? 128);
    });
  });
}
