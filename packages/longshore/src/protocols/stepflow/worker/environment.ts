// The environment variables in which a worker finds the addresses of its orchestrator. An orchestrator sets them for workers that it
// starts.

import { badVariable, type Environment, variable } from "../../../core/environment.ts";
import type { TelemetryVariables } from "../../../runner/telemetry.ts";

/** Stepflow's names for the variables of `telemetry()`: pass them as its option `variables`. `longshore work` uses them by default. */
export const telemetryVariables: TelemetryVariables = {
  endpoint: "STEPFLOW_OTLP_ENDPOINT",
  service: "STEPFLOW_SERVICE_NAME",
  traces: "STEPFLOW_TRACE_ENABLED",
  logs: "STEPFLOW_LOG_DESTINATION",
  logLevel: "STEPFLOW_LOG_LEVEL",
  logFile: "STEPFLOW_LOG_FILE",
};

/** The transport that the environment selects, or undefined. */
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
