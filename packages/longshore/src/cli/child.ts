// A worker as a child process of `dev` or `demo`: files of the user, or of the sample.

import { type ChildProcess, fork } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { workerIdPrefix } from "../core/process-worker-id.ts";
import type { AppLoaded } from "./worker-process.ts";

export interface WorkerChild {
  /** The beginning of the ids of its workers. The files may choose other ids. */
  readonly workerIds: string;
  /** Resolves with the exit code or the signal. */
  readonly ended: Promise<Ending>;
  /** Stops it and waits until it has ended. May be called at any time and any number of times. */
  stop(): Promise<void>;
}

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface WorkerChildOptions {
  readonly files: readonly string[];
  /** The URL of the server. */
  readonly url: string;
  readonly token?: string;
  /** The file of a certificate that the worker trusts in addition to the usual ones. */
  readonly trust?: string;
  /** Receives each line that the worker writes, to either stream. */
  readonly line: (text: string) => void;
  /** Called when the files are loaded, with what they export. */
  readonly loaded?: (app: AppLoaded) => void;
}

/** Short, because a person waits. Tasks that still run then are given to another worker when their leases end. */
const graceMs = 5_000;

export function startWorkerChild({ files, url, token, trust, line, loaded }: WorkerChildOptions): WorkerChild {
  const program = fileURLToPath(new URL("./worker-process.js", import.meta.url));
  // The worker must not get the token of this command's caller.
  const env: NodeJS.ProcessEnv = { ...process.env, LONGSHORE_URL: url, LONGSHORE_TOKEN: token };
  if (trust !== undefined) env.NODE_EXTRA_CA_CERTS ??= trust;
  // A process group of its own: Ctrl-C then reaches only this process, which stops the child itself. If this process crashes, the IPC
  // channel closes and the child ends by itself.
  const child = fork(program, [...files], { env, stdio: ["ignore", "pipe", "pipe", "ipc"], detached: process.platform !== "win32" });
  for (const stream of [child.stdout, child.stderr]) if (stream !== null) createInterface({ input: stream }).on("line", line);
  // The file itself may send messages to its parent, which are not for this command.
  child.on("message", (message: { readonly kind?: unknown } | null) => {
    if (message?.kind === "loaded") loaded?.(message as AppLoaded);
  });
  const ended = new Promise<Ending>((resolve) => {
    child.once("error", () => resolve({ code: null, signal: null }));
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  return {
    workerIds: workerIdPrefix(child.pid),
    ended,
    async stop() {
      send(child, "SIGTERM");
      const timer = setTimeout(() => send(child, "SIGKILL"), graceMs);
      await ended;
      clearTimeout(timer);
    },
  };
}

function send(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.exitCode === null && child.signalCode === null) child.kill(signal);
}
