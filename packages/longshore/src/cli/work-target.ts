// Where `longshore work` takes its tasks from: typed options take precedence over the environment, and an orchestrator that starts
// workers sets variables of its own.

import type { Command } from "commander";
import { type Environment, variable } from "../environment.ts";
import { flowkitIn } from "../protocols/flowkit/worker/environment.ts";
import { transportIn } from "../protocols/stepflow/worker/environment.ts";
import { CommandFailure } from "./failure.ts";
import type { ProtocolName } from "./protocols.ts";

export interface TargetFlags {
  readonly on: string;
  readonly conductor?: string | true;
  readonly port?: number;
  readonly host?: string;
}

export interface WorkTarget {
  readonly protocol: ProtocolName;
  /** Whom the worker works for, for people where the protocol needs no address. */
  readonly on: string;
}

const stepflowHttp: WorkTarget = { protocol: "stepflow-http", on: "Stepflow" };

export function targetOf(flags: TargetFlags, command: Pick<Command, "getOptionValueSource">, env: Environment = process.env): WorkTarget {
  const { on, conductor, port } = flags;
  const onToldBy = command.getOptionValueSource("on");
  const typed = [
    ...(onToldBy === "cli" ? ["--on"] : []),
    ...(conductor === undefined ? [] : ["--conductor"]),
    ...(port === undefined ? [] : ["--port"]),
  ];
  if (typed.length > 1) {
    throw new CommandFailure(
      `${typed.slice(0, 2).join(" and ")} name two servers. Give one of them; a program that calls work() may have several.`,
    );
  }
  if (port !== undefined) return stepflowHttp;
  if (typeof conductor === "string") return { protocol: "conductor", on: conductor };
  if (onToldBy === "cli") return { protocol: "workflow-graph", on };
  return conductor === undefined ? fromEnvironment(on, onToldBy, env) : conductorFrom(env);
}

function fromEnvironment(on: string, onToldBy: string | undefined, env: Environment): WorkTarget {
  // First: an orchestrator sets it for the worker that it starts, whatever else is in the environment that it passes on.
  const transport = transportIn(env);
  if (transport === "http") return stepflowHttp;
  if (transport !== undefined) return { protocol: "stepflow", on: `Stepflow's ${transport === "grpc" ? "gRPC" : "NATS"} queue` };
  const flowkit = flowkitIn(env);
  if (flowkit !== undefined) return { protocol: "flowkit", on: flowkit };
  if (onToldBy === "default" && env.CONDUCTOR_SERVER_URL !== undefined) return conductorFrom(env);
  if (onToldBy === "default" && variable(env, "FLOWKIT_MONGO_URL") !== undefined) throw noBroker(on);
  return { protocol: "workflow-graph", on };
}

/** Only half of FlowKit is configured. Then a server of another protocol is not meant. */
function noBroker(on: string): CommandFailure {
  return new CommandFailure(
    `FLOWKIT_MONGO_URL names FlowKit's database, and its brokers are not set: set KAFKA_BOOTSTRAP_SERVERS too, or FLOWKIT_URL for a Longshore server that brings a bus. To work for the server at ${on} nevertheless, pass --on ${on}.`,
  );
}

function conductorFrom({ CONDUCTOR_SERVER_URL: on = "http://localhost:8080" }: Environment): WorkTarget {
  return { protocol: "conductor", on };
}
