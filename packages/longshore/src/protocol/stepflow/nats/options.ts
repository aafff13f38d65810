// What `stepflowNats(url, options)` takes, checked once.

import { LongshoreError } from "../../../errors.ts";
import { textOf } from "../environment.ts";
import { named, type QueueOptions, type QueueSettings, queueSettings } from "../queue-options.ts";

export interface StepflowNatsOptions extends QueueOptions {
  /** The stream that the tasks of this worker's queue are in; `STEPFLOW_NATS_STREAM`, else the name of the queue, else `STEPFLOW_TASKS`. */
  readonly stream?: string;
  /** The queue, where each has the stream of its name; `STEPFLOW_QUEUE_NAME`. */
  readonly queue?: string;
  /** The durable consumer that the workers of a queue share; `STEPFLOW_NATS_CONSUMER`, else `stepflow-default`. */
  readonly consumer?: string;
  /** Where a run has moved to is asked here first; `STEPFLOW_TASKS_URL`. Not needed: any orchestrator that tasks came from can tell. */
  readonly orchestratorUrl?: string;
  /** Further options of the NATS client's `connect`, such as `{ tls: {}, authenticator }`. */
  readonly connection?: { readonly [option: string]: unknown };
}

export interface NatsSettings extends QueueSettings {
  readonly servers: readonly string[];
  readonly login: { readonly user?: string; readonly pass?: string; readonly token?: string };
  readonly stream: string;
  readonly consumer: string;
  readonly orchestratorUrl: string | undefined;
  readonly connection: { readonly [option: string]: unknown };
}

const urlDefault = "nats://localhost:4222";
const streamDefault = "STEPFLOW_TASKS";
const consumerDefault = "stepflow-default";

export function natsSettings(url: string | undefined, options: StepflowNatsOptions): NatsSettings {
  const env = options.env ?? process.env;
  const stream = named("stream", options.stream) ?? named("queue", options.queue);
  return {
    ...queueSettings(options),
    ...serversOf(url ?? textOf(env, "STEPFLOW_NATS_URL") ?? urlDefault),
    stream: objectName("stream", stream ?? textOf(env, "STEPFLOW_NATS_STREAM") ?? textOf(env, "STEPFLOW_QUEUE_NAME") ?? streamDefault),
    consumer: objectName("consumer", options.consumer ?? textOf(env, "STEPFLOW_NATS_CONSUMER") ?? consumerDefault),
    orchestratorUrl: named("orchestratorUrl", options.orchestratorUrl) ?? textOf(env, "STEPFLOW_TASKS_URL"),
    connection: options.connection ?? {},
  };
}

/** `nats://user:password@host:4222`, `nats://token@host:4222`, `host:4222`; several with commas between them. */
function serversOf(url: string): Pick<NatsSettings, "servers" | "login"> {
  const urls = url.split(",").map((each) => parse(each.trim(), url));
  const { username, password } = urls.find((each) => each.username !== "") ?? { username: "", password: "" };
  const [user, pass] = [decodeURIComponent(username), decodeURIComponent(password)];
  const login = user === "" ? {} : pass === "" ? { token: user } : { user, pass };
  return { servers: urls.map(({ protocol, host }) => `${protocol}//${host}`), login };
}

function parse(text: string, all: string): URL {
  const withScheme = /^[a-z]+:\/\//i.test(text) ? text : `nats://${text}`;
  const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
  if (url !== undefined && url.hostname !== "" && (url.protocol === "nats:" || url.protocol === "tls:")) return url;
  const message = `The NATS server's address is ${JSON.stringify(all)}, expected one such as "${urlDefault}".`;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", message, { detail: { field: "url" } });
}

/** Names of streams and consumers become parts of subjects. */
function objectName(field: string, name: string): string {
  if (/^[^\s.*>/\\]+$/.test(name)) return name;
  const expected = "a name without spaces, dots, slashes, * and >";
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${field} is ${JSON.stringify(name)}, expected ${expected}.`, {
    detail: { field, expected },
  });
}
