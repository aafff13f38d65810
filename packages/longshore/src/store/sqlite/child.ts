// Work on a data file in a separate process, for two reasons. A long statement of SQLite would block the event loop. And when a process
// has ended, its files are closed. When only a database connection is closed, the driver of Node 20 may still have files open.

import { type ChildProcess, fork } from "node:child_process";
import { toError } from "../../core/errors.ts";

type Answer = { readonly value: unknown } | { readonly error: string };

export interface ChildWork<T> {
  readonly pid: number | undefined;
  /** Rejects when the work failed, or when the process ended without a result. */
  readonly done: Promise<T>;
  /** Resolves when the process has ended, and has closed all its files. */
  readonly ended: Promise<void>;
  /** Stops the process. */
  stop(): void;
}

/** Runs a program that calls `answerParent`. */
export function runChild<T>(program: URL, args: readonly string[]): ChildWork<T> {
  const child = started(program, args);
  const done = new Promise<T>((resolve, reject) => {
    child.once("message", (answer: Answer) => ("error" in answer ? reject(new Error(answer.error)) : resolve(answer.value as T)));
    child.once("error", reject);
    child.once("exit", (code, signal) => reject(new Error(`the process ended with ${signal ?? code}`)));
  });
  const ended = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", () => resolve());
  });
  return { pid: child.pid, done, ended, stop: () => void child.kill("SIGKILL") };
}

/** Tests run the TypeScript source, for which a process needs a loader. */
function started(program: URL, args: readonly string[]): ChildProcess {
  if (!import.meta.url.endsWith(".ts")) return fork(program, args, { execArgv: [] });
  return fork(new URL(program.href.replace(/\.js$/, ".ts")), args, { execArgv: ["--import", "tsx"] });
}

/** Called in the child process: sends the result of `work`, or its error. */
export async function answerParent(work: (...args: string[]) => Promise<unknown>): Promise<void> {
  const answer: Answer = await work(...process.argv.slice(2)).then(
    (value) => ({ value }),
    (error: unknown) => ({ error: toError(error).message }),
  );
  process.send?.(answer);
  process.disconnect?.();
}
