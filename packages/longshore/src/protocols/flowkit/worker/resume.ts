// The unfinished runs of an earlier process of this worker. Their handlers are gone, so the runs are reported as transient failures, which
// coordinators retry at once. They are also listed in the announcement, as in the reference.

import { type ActiveRun, statusTopic } from "../wire/shapes.ts";
import { reasons } from "./classify.ts";
import { AttemptEvents } from "./events.ts";
import type { WorkerLog } from "./log.ts";
import type { RunSurroundings } from "./run.ts";

/** The document ids for the state of each slot. The first is the worker's id, under which the reference stores its one run. */
export function stateIds(workerId: string, slots: number): string[] {
  return Array.from({ length: slots }, (_, at) => (at === 0 ? workerId : `${workerId}#${at + 1}`));
}

/** The run to announce; null when there is none. May be called again when it throws. */
export async function resumeRuns(
  around: RunSurroundings,
  roles: readonly string[],
  ids: readonly string[],
  log: WorkerLog,
): Promise<ActiveRun | null> {
  const { artifacts } = around;
  let first: ActiveRun | null = null;
  for (const id of ids) {
    const run = await artifacts.loadState(id);
    if (run === null) continue;
    if (roles.includes(run.step_type)) {
      log("warning", "worker.recovery_present", { task_id: run.task_id, node_id: run.node_id });
      await giveUp(run, around);
      first ??= run;
    }
    await artifacts.saveState(id, null);
  }
  return first;
}

async function giveUp(run: ActiveRun, { bus, settings, host }: RunSurroundings): Promise<void> {
  const { workerId, leaseTtlMs, heartbeatMs, topics } = settings;
  const topic = statusTopic(topics, run.step_type);
  const { clock } = host;
  const role = run.step_type;
  const events = new AttemptEvents({ bus, clock, topic, key: run, role, workerId, leaseId: run.lease_id, leaseTtlMs, heartbeatMs });
  const finished =
    run.state === "cancelling"
      ? events.cancelled(reasons.workerRestarted)
      : events.failed(reasons.workerRestarted, false, "The worker was started again while this node ran.");
  await events.send([finished]);
}
