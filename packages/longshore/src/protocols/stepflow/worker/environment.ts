// The environment variables by which an orchestrator tells a worker where its work is; for workers that it starts itself it sets them.

import { badVariable, type Environment, variable } from "../../../environment.ts";

/** The transport that the environment asks for. Undefined when it says nothing. */
export function transportIn(env: Environment): "grpc" | "nats" | "http" | undefined {
  const told = variable(env, "STEPFLOW_TRANSPORT");
  switch (told?.toLowerCase()) {
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
      throw badVariable("STEPFLOW_TRANSPORT", told as string, "grpc, nats or http");
  }
}
