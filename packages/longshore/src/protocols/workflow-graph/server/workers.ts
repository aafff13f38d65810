// The list of workers in this wire's words.

import type { WorkerView } from "../../../engine/board/workers.ts";
import type { WorkerInfo } from "../wire/shapes.ts";

/** What workers of this wire are known by in the registry. */
export const protocolName = "workflow-graph";

/** Also those that only ever claimed. */
export function isOfThisWire({ protocol }: WorkerView): boolean {
  return protocol === protocolName;
}

export function renderWorker(worker: WorkerView): WorkerInfo {
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
