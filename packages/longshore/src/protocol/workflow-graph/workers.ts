// The list of workers in this wire's words.

import type { WorkerView } from "../../board/workers.ts";
import type { WorkerInfo } from "./wire.ts";

/** What workers of this wire are known by in the registry. */
export const protocolName = "workflow-graph";

/** Workers of this wire, in the order in which they came; also those that only ever claimed. */
export function renderWorkers(workers: readonly WorkerView[]): WorkerInfo[] {
  return workers.filter((worker) => worker.protocol === protocolName).map(renderWorker);
}

function renderWorker(worker: WorkerView): WorkerInfo {
  const jobs = worker.tasks.map((task) => task.step);
  return {
    worker_id: worker.id,
    labels: [...worker.labels],
    registered_at_ms: worker.registeredAt,
    last_heartbeat_ms: worker.seenAt,
    current_job: jobs[0] ?? null,
    // This wire has no word for one that is known from before a restart.
    status: worker.status === "unheard" ? (jobs.length > 0 ? "busy" : "idle") : worker.status,
    current_jobs: jobs,
  };
}
