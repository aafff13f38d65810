// The environment variables that a worker looks at.

import { type Environment, variable } from "../../../core/environment.ts";

/** 1, true, yes and on mean yes, as in the reference; anything else means no. */
export function flagOf(env: Environment, name: string): boolean {
  return /^(1|true|yes|on)$/i.test(variable(env, name) ?? "");
}

/**
 * The FlowKit that the environment names, in words; undefined when it names none. Brokers alone are not enough: other programs have
 * them in their environment as well.
 */
export function flowkitIn(env: Environment): string | undefined {
  const server = variable(env, "FLOWKIT_URL");
  const brokers = variable(env, "KAFKA_BOOTSTRAP_SERVERS");
  if (variable(env, "FLOWKIT_MONGO_URL") !== undefined && brokers !== undefined) return `FlowKit on Kafka at ${brokers}`;
  return server === undefined ? undefined : `FlowKit at ${URL.canParse(server) ? new URL(server).origin : server}`;
}
