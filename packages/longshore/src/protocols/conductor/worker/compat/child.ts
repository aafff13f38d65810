// The program of a worker's process: loads the module that declares the worker, and works for it. A handler that is not asynchronous runs
// in threads of this process, where it delays neither polls nor heartbeats.

import { LongshoreError } from "../../../../core/errors.ts";
import { importForTasks } from "../../../../core/load.ts";
import { openWork } from "../../../../open-work.ts";
import { runSupervised } from "../../../../runner/supervise/worker-side.ts";
import { conductor } from "../worker.ts";
import { getRegisteredWorker, getRegisteredWorkers } from "./registry.ts";
import type { ChildWork } from "./running-workers.ts";
import { taskOf } from "./task-adapter.ts";

await runSupervised<ChildWork>(async ({ work, metrics }, logger) => {
  const { module, taskDefName, domain, connection, options, outbox } = work;
  await importForTasks(module);
  const worker = getRegisteredWorker(taskDefName, domain);
  if (worker === undefined) throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${module} no longer declares a worker for ${taskDefName}.`);
  const on = conductor(connection.url, { ...connection.options, outbox, workers: { [taskDefName]: options } });
  // A thread finds tasks by name, so it could not distinguish two domains with the same task name.
  const twins = getRegisteredWorkers().filter((each) => each.taskDefName === taskDefName).length > 1;
  return openWork({ tasks: [taskOf(worker, module)], on, isolate: twins ? "inline" : "auto", metrics, logger });
});
