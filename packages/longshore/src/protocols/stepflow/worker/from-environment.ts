// The worker that the environment describes. An orchestrator that starts workers sets these variables; for workers that are deployed on
// their own they are in the manifest.
//
// STEPFLOW_TRANSPORT grpc, nats, or (ours) http on any free port; when absent, STEPFLOW_TASKS_URL means grpc and STEPFLOW_NATS_URL means
// nats
//   STEPFLOW_QUEUE_NAME, STEPFLOW_TASKS_URL                               where a gRPC worker pulls from
//   STEPFLOW_NATS_URL, STEPFLOW_NATS_STREAM, STEPFLOW_NATS_CONSUMER       where a NATS worker does
//   STEPFLOW_BLOB_URL, STEPFLOW_BLOB_THRESHOLD_BYTES                      blobs
//   STEPFLOW_MAX_CONCURRENT, STEPFLOW_SHUTDOWN_GRACE_SECS                 slots, and how long running tasks may continue after SIGTERM

import type { Environment } from "../../../core/environment.ts";
import type { Transport } from "../../../runner/transport.ts";
import { transportIn } from "./environment.ts";
import { stepflowGrpc } from "./grpc/worker.ts";
import { stepflowHttp } from "./http/worker.ts";
import { stepflowNats } from "./nats/worker.ts";
import type { QueueOptions } from "./queue-options.ts";

/** Undefined when the environment selects no transport. */
export function stepflowFromEnvironment(env: Environment = process.env, options: QueueOptions = {}): Transport | undefined {
  switch (transportIn(env)) {
    case "grpc":
      return stepflowGrpc(undefined, { ...options, env });
    case "nats":
      return stepflowNats(undefined, { ...options, env });
    case "http":
      return stepflowHttp({ env });
    default:
      return undefined;
  }
}
