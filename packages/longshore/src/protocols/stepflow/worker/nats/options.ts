// The options of `stepflowNats(url, options)` and their checks.

import { checkedVariable } from "../../../../core/environment.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { type NatsServers, objectName, serversOf, urlDefault } from "../../wire/nats/servers.ts";
import { addressOption, named, type QueueOptions, type QueueSettings, queueSettings } from "../queue-options.ts";

/** The options of `stepflowNats()`. */
export interface StepflowNatsOptions extends QueueOptions {
  /**
   * The stream with the tasks of this worker's queue. Default: `STEPFLOW_NATS_STREAM`, else the name of the queue, else `STEPFLOW_TASKS`.
   */
  readonly stream?: string;
  /** The queue, for servers on which each queue has a stream of the same name. Default: `STEPFLOW_QUEUE_NAME`. */
  readonly queue?: string;
  /** The durable consumer that the workers of a queue share. Default: `STEPFLOW_NATS_CONSUMER`, else `stepflow-default`. */
  readonly consumer?: string;
  /**
   * The orchestrator's address, as tasks name it. Default: `STEPFLOW_TASKS_URL`. The worker calls it first to find a run that has moved. A
   * worker with a token needs it: the token is sent only there, because other programs may publish tasks. Without a token it is optional.
   */
  readonly orchestratorUrl?: string;
  /** Further options of the NATS client's `connect`, such as `{ tls: {}, authenticator }`. */
  readonly connection?: { readonly [option: string]: unknown };
}

export interface NatsSettings extends QueueSettings, NatsServers {
  readonly stream: string;
  readonly consumer: string;
  readonly orchestratorUrl: string | undefined;
  readonly connection: { readonly [option: string]: unknown };
}

const streamDefault = "STEPFLOW_TASKS";
const consumerDefault = "stepflow-default";

export function natsSettings(url: string | undefined, options: StepflowNatsOptions): NatsSettings {
  const env = options.env ?? process.env;
  const nameOf = (field: string, variable: string) => checkedVariable(env, variable, (text) => objectName(field, text));
  const stream = named("stream", options.stream) ?? named("queue", options.queue);
  const shared = queueSettings(options);
  const orchestratorUrl = addressOption("orchestratorUrl", options.orchestratorUrl, env, "STEPFLOW_TASKS_URL");
  if (shared.token !== undefined && orchestratorUrl === undefined) throw nowhereToSend();
  return {
    ...shared,
    ...(url === undefined ? (checkedVariable(env, "STEPFLOW_NATS_URL", serversOf) ?? serversOf(urlDefault)) : serversOf(url)),
    stream:
      stream === undefined
        ? (nameOf("stream", "STEPFLOW_NATS_STREAM") ?? nameOf("stream", "STEPFLOW_QUEUE_NAME") ?? streamDefault)
        : objectName("stream", stream),
    consumer:
      options.consumer === undefined
        ? (nameOf("consumer", "STEPFLOW_NATS_CONSUMER") ?? consumerDefault)
        : objectName("consumer", options.consumer),
    orchestratorUrl,
    connection: options.connection ?? {},
  };
}

function nowhereToSend(): LongshoreError {
  const expected = "orchestratorUrl or STEPFLOW_TASKS_URL with the address of the orchestrator that the token is for";
  return new LongshoreError("LONGSHORE_BAD_CONFIG", `A worker on NATS was given a token and no orchestrator; expected ${expected}.`, {
    detail: { field: "orchestratorUrl", expected },
  });
}
