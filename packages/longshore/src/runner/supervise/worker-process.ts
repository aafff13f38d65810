// One worker process, as its supervisor sees it.

import { fork } from "node:child_process";
import type { Clock } from "../../core/clock.ts";
import type { MetricDelta } from "../../core/metrics.ts";
import type { WorkerStatuses } from "../health.ts";
import { unpackError } from "../isolate/messages.ts";
import type { Notice } from "../notices.ts";
import type { Begin, FromWorker, SentEvent } from "./messages.ts";
import type { ProcessEnding, WorkerProcess } from "./supervisor.ts";

export interface WorkerProcessOptions {
  readonly clock: Clock;
  /** The program, which calls `runSupervised`. */
  readonly entry: URL;
  readonly begin: Begin;
  readonly started: () => void;
  readonly refused: (error: Error) => void;
  readonly metrics: (deltas: readonly MetricDelta[]) => void;
  readonly event: (event: SentEvent) => void;
  readonly notice: (notice: Notice) => void;
}

export function startWorkerProcess(options: WorkerProcessOptions): WorkerProcess {
  const { clock, entry, begin } = options;
  // A process group of its own: Ctrl-C then reaches only the supervisor, which stops its processes in its own order. The process shares our
  // output.
  const child = fork(entry, {
    stdio: ["ignore", "inherit", "inherit", "ipc"],
    serialization: "advanced",
    detached: process.platform !== "win32",
  });
  let heardMs = clock.now();
  let workers: WorkerStatuses = {};
  child.on("message", (message) => {
    heardMs = clock.now();
    const fromWorker = message as FromWorker;
    if (fromWorker.kind === "news") {
      workers = fromWorker.workers;
      options.metrics(fromWorker.metrics);
    } else if (fromWorker.kind === "events") for (const event of fromWorker.events) options.event(event);
    else if (fromWorker.kind === "notice") options.notice(fromWorker.notice);
    else if (fromWorker.kind === "started") options.started();
    else options.refused(unpackError(fromWorker.error));
  });
  // A message that cannot be sent means that the process has ended, which `ended` reports.
  child.send(begin, () => {});
  const ended = new Promise<ProcessEnding>((resolve) => {
    child.once("error", () => resolve({ code: null, signal: null }));
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  return {
    pid: child.pid,
    ended,
    get heardMs() {
      return heardMs;
    },
    get workers() {
      return workers;
    },
    kill: (signal) => {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
    },
  };
}
