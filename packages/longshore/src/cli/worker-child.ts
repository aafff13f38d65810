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
  readonly settings: WorkerSettings;
}

await runSupervised<ChildWork>(async ({ work, metrics }, logger) => {
  const { files, tasks: names, settings } = work;
  const print = workerProtocol(settings.protocol).ownsOutput ? reserveOutput() : undefined;
  const tasks = (await loadTasks(files)).tasks.filter((task) => names.includes(task.name));
  if (tasks.length < names.length) {
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${files.join(", ")} no longer exports every task of ${names.join(", ")}.`);
  }
  return openWorker(tasks, settings, { logger, metrics, print });
});
