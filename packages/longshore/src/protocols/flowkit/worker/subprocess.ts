// A program run on behalf of a batch. It leads a process group of its own, so that a cancel reaches what it has started as well.

import { spawn } from "node:child_process";
import type { Clock } from "../../../core/clock.ts";
import { ProcessGroups } from "../../../core/process-groups.ts";

export interface SubprocessOptions {
  /** Between the request to end and the kill; 5 s by default. */
  readonly grace_ms?: number;
  readonly graceMs?: number;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

const graceMsDefault = 5_000;

/** Its exit code; a program that a signal ended counts as 128. Its output is the worker's: nothing waits for a reader. */
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
