// The program of a worker process of `longshore work`. Its parent sends it the tasks, the files, and the server.

import { LongshoreError } from "../core/errors.ts";
import type { WorkerSettings } from "../protocols/worker-half.ts";
import { runSupervised } from "../runner/supervise/worker-side.ts";
import { loadTasks } from "./load-tasks.ts";
import { workerProtocol } from "./protocols.ts";
import { reserveOutput } from "./reserve-output.ts";
import { openWorker } from "./worker.ts";

export interface ChildWork {
  readonly files: readonly string[];
  readonly tasks: readonly string[];
  readonly functions: readonly string[];
  readonly settings: WorkerSettings;
}

await runSupervised<ChildWork>(async ({ work, metrics }, logger) => {
  const { files, settings } = work;
  const print = workerProtocol(settings.protocol).ownsOutput ? reserveOutput() : undefined;
  const loaded = await loadTasks(files);
  const tasks = loaded.tasks.filter(({ name }) => work.tasks.includes(name));
  const functions = loaded.functions.filter(({ name }) => work.functions.includes(name));
  if (tasks.length < work.tasks.length || functions.length < work.functions.length) {
    const all = [...work.functions, ...work.tasks].join(", ");
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${files.join(", ")} no longer exports everything of ${all}.`);
  }
  return openWorker(tasks, settings, { logger, metrics, print, functions });
});
