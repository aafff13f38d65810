// The options of `stepflowGrpc(url, options)` and their checks.

import { variable } from "../../../../core/environment.ts";
import { addressOption, named, type QueueOptions, type QueueSettings, queueSettings } from "../queue-options.ts";

/** The options of `stepflowGrpc()`. */
export interface StepflowGrpcOptions extends QueueOptions {
  /** The queue to pull from. Default: `STEPFLOW_QUEUE_NAME`, else `default`. */
  readonly queue?: string;
}

export interface GrpcSettings extends QueueSettings {
  readonly url: string;
  readonly queue: string;
}

/** The reference's default address. */
const urlDefault = "localhost:7837";
const queueDefault = "default";

export function grpcSettings(url: string | undefined, options: StepflowGrpcOptions): GrpcSettings {
  const env = options.env ?? process.env;
  return {
    ...queueSettings(options),
    url: addressOption("The orchestrator's address", url, env, "STEPFLOW_TASKS_URL") ?? urlDefault,
    queue: named("queue", options.queue) ?? variable(env, "STEPFLOW_QUEUE_NAME") ?? queueDefault,
  };
}
