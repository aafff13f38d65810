// The environment variables by which an orchestrator gives a worker its addresses; for workers that it starts itself it sets them.

import { badVariable, type Environment, variable } from "../../../core/environment.ts";
import type { TelemetryVariables } from "../../../runner/telemetry.ts";

/** Stepflow's names for the options of `telemetry()`: hand them over as its `variables`. `longshore work` knows them without that. */
export const telemetryVariables: TelemetryVariables = {
  endpoint: "STEPFLOW_OTLP_ENDPOINT",
  service: "STEPFLOW_SERVICE_NAME",
  traces: "STEPFLOW_TRACE_ENABLED",
  logs: "STEPFLOW_LOG_DESTINATION",
  logLevel: "STEPFLOW_LOG_LEVEL",
  logFile: "STEPFLOW_LOG_FILE",
};

/** The transport of the environment. Undefined when it names none. */
export function transportIn(env: Environment): "grpc" | "nats" | "http" | undefined {
  const transport = variable(env, "STEPFLOW_TRANSPORT");
  switch (transport?.toLowerCase()) {
    case "grpc":
      return "grpc";
    case "nats":
      return "nats";
    case "http":
      return "http";
    case undefined:
      if (variable(env, "STEPFLOW_TASKS_URL") !== undefined) return "grpc";
      return variable(env, "STEPFLOW_NATS_URL") === undefined ? undefined : "nats";
    default:
      throw badVariable("STEPFLOW_TRANSPORT", transport as string, "grpc, nats or http");
  }
}
