// What `stepflowGrpc(url, options)` takes, checked once.

import { variable } from "../../../environment.ts";
import { LongshoreError } from "../../../errors.ts";
import { parseTarget } from "../../../grpc/target.ts";
import { named, type QueueOptions, type QueueSettings, queueSettings } from "../queue-options.ts";

export interface StepflowGrpcOptions extends QueueOptions {
  /** The queue to pull from; `STEPFLOW_QUEUE_NAME`, else `default`. */
  readonly queue?: string;
}

export interface GrpcSettings extends QueueSettings {
  readonly url: string;
  readonly queue: string;
}

/** Where the reference listens. */
const urlDefault = "localhost:7837";
const queueDefault = "default";

export function grpcSettings(url: string | undefined, options: StepflowGrpcOptions): GrpcSettings {
  const env = options.env ?? process.env;
  const address = url ?? variable(env, "STEPFLOW_TASKS_URL") ?? urlDefault;
  return {
    ...queueSettings(options),
    url: checkAddress(address),
    queue: named("queue", options.queue) ?? variable(env, "STEPFLOW_QUEUE_NAME") ?? queueDefault,
  };
}

function checkAddress(address: string): string {
  try {
    parseTarget(address);
    return address;
  } catch (error) {
    const message = `The orchestrator's address is ${JSON.stringify(address)}, expected HOST:PORT, http://HOST:PORT or https://HOST:PORT.`;
    throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause: error, detail: { field: "url" } });
  }
}
