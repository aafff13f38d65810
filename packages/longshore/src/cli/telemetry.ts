// The output of `longshore work`: lines for people, or spans and structured records if the environment or the protocol requires them. Also
// makes the spans of a server.

import { type Logger, stderrLogger } from "../runner/notices.ts";
import type { Telemetry } from "../runner/telemetry.ts";
import { isTelemetryWanted } from "../telemetry/options.ts";
import { telemetryVariables, workerProtocol } from "./protocols.ts";

export interface WorkerOutput {
  /** Prints a message for the person who runs the worker. */
  readonly log: Logger;
  readonly telemetry: Telemetry | undefined;
}

/** Throws LONGSHORE_BAD_CONFIG when a variable is invalid, or requires a package that is not installed. */
export async function workerOutput(protocol: string | undefined, workerId: string | undefined): Promise<WorkerOutput> {
  const { structuredLog } = workerProtocol(protocol);
  if (!structuredLog && !isTelemetryWanted(process.env, telemetryVariables)) return { log: stderrLogger, telemetry: undefined };
  const { telemetry } = await import("../telemetry/index.ts");
  const made = await telemetry({ variables: telemetryVariables, ...(workerId === undefined ? {} : { worker: workerId }) });
  return { log: made.logger, telemetry: made };
}

/**
 * The telemetry of a server, for its options: none without an endpoint. Throws LONGSHORE_BAD_CONFIG when the endpoint or a variable is
 * invalid, or a package is not installed.
 */
export async function serverTelemetry(endpoint: string | undefined): Promise<{ telemetry?: Telemetry }> {
  if (endpoint === undefined || endpoint === "") return {};
  const { telemetry } = await import("../telemetry/index.ts");
  // The log of a server goes to standard error.
  return { telemetry: await telemetry({ endpoint, worker: "longshore", logs: [] }) };
}
