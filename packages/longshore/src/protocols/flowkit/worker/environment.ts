// The environment variables of a worker.

import { type Environment, variable } from "../../../core/environment.ts";

/** 1, true, yes and on are true, as in the reference; anything else is false. */
export function flagOf(env: Environment, name: string): boolean {
  return /^(1|true|yes|on)$/i.test(variable(env, name) ?? "");
}

/**
 * Describes the FlowKit installation in the environment; undefined when there is none. Brokers alone are not enough, because other programs
 * use the same variable.
 */
export function flowkitIn(env: Environment): string | undefined {
  const server = variable(env, "FLOWKIT_URL");
  const brokers = variable(env, "KAFKA_BOOTSTRAP_SERVERS");
  if (variable(env, "FLOWKIT_MONGO_URL") !== undefined && brokers !== undefined) return `FlowKit on Kafka at ${brokers}`;
  return server === undefined ? undefined : `FlowKit at ${URL.canParse(server) ? new URL(server).origin : server}`;
}
