// The list of workers in this wire's format.

import type { WorkerView } from "../../../engine/board/worker-view.ts";
import type { WorkerInfo } from "../wire/shapes.ts";

/** The protocol name of these workers in the list of workers. */
export const protocolName = "workflow-graph";

/** Includes workers that only claimed. */
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
    // This wire has no status for a worker that is known from before a restart.
    status: worker.status === "unheard" ? (jobs.length > 0 ? "busy" : "idle") : worker.status,
    current_jobs: jobs,
  };
}
