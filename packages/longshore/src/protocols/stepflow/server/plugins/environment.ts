// The environment of a plugin's process.
//
// A queue worker inherits the server's environment and gets the address of its queue. It does not get the variables that would let it act
// as an operator. A worker that is called gets only the configured variables, as in the HTTP releases.

import type { GrpcPlugin, HttpPlugin, NatsPlugin } from "../config/config.ts";

/** The server's address for workers on this machine: `127.0.0.1:4500`, or `https://127.0.0.1:4500` with TLS. */
export type Address = string;

export function httpEnvironment({ launch }: HttpPlugin): NodeJS.ProcessEnv {
  return { ...launch?.env };
}

export function queueEnvironment(plugin: GrpcPlugin | NatsPlugin, address: Address, inherited: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const { LONGSHORE_TOKEN: _secret, ...rest } = inherited;
  return { ...rest, ...transportVariables(plugin, address), ...plugin.launch?.env };
}

/** The reference supports neither addresses with a scheme nor TLS, and uses one port for everything. */
function transportVariables(plugin: GrpcPlugin | NatsPlugin, address: Address): NodeJS.ProcessEnv {
  if (plugin.type === "grpc") {
    return { STEPFLOW_TRANSPORT: "grpc", STEPFLOW_TASKS_URL: address, STEPFLOW_QUEUE_NAME: plugin.queue, STEPFLOW_BLOB_URL: address };
  }
  return {
    STEPFLOW_TRANSPORT: "nats",
    STEPFLOW_NATS_URL: plugin.url,
    ...(plugin.stream === null ? {} : { STEPFLOW_NATS_STREAM: plugin.stream, STEPFLOW_QUEUE_NAME: plugin.stream }),
    STEPFLOW_NATS_CONSUMER: plugin.consumer,
    STEPFLOW_BLOB_URL: address,
  };
}
