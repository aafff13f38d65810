// Answers a coordinator's query about a node: this worker runs it, or it does not and reports whether the node is complete.

import { dedupIds } from "../wire/hash.ts";
import { type Envelope, encodeEnvelope, nobody, payloadOf, type Snapshot } from "../wire/shapes.ts";
import type { FlowkitRun, RunSurroundings } from "./run.ts";

export async function answerQuery(query: Envelope, run: FlowkitRun | undefined, around: RunSurroundings): Promise<void> {
  const { bus, settings, host } = around;
  const { task_id, node_id, step_type, attempt_epoch, corr_id } = query;
  const snapshot = run === undefined ? await idle(query, around) : running(run, around);
  const value = encodeEnvelope({
    msg_type: "reply",
    role: "worker",
    corr_id,
    dedup_id: dedupIds.snapshot(query, settings.workerId),
    task_id,
    node_id,
    step_type,
    attempt_epoch,
    ts_ms: host.clock.now(),
    payload: payloadOf(snapshot),
    target_worker_id: null,
  });
  await bus.publish([{ topic: settings.topics.reply, key: task_id === "" ? nobody : task_id, value }]);
}

function running({ active, cancelling, hold }: FlowkitRun, { settings, host }: RunSurroundings): Snapshot {
  const { workerId: worker_id } = settings;
  return {
    reply: "TASK_SNAPSHOT",
    worker_id,
    run_state: cancelling ? "cancelling" : "running",
    attempt_epoch: active.attempt_epoch,
    lease: { worker_id, lease_id: active.lease_id, deadline_ts_ms: host.clock.now() + hold.termMs },
    progress: {},
    artifacts: null,
  };
}

async function idle({ task_id, node_id }: Envelope, { artifacts }: RunSurroundings): Promise<Snapshot> {
  const complete = await artifacts.isComplete(task_id, node_id);
  return {
    reply: "TASK_SNAPSHOT",
    worker_id: null,
    run_state: "idle",
    attempt_epoch: 0,
    lease: null,
    progress: null,
    artifacts: complete ? { complete: true } : null,
  };
}
