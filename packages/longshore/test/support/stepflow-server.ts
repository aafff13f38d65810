// The Stepflow API on a socket of its own: engine, services, both faces and the work that the server does itself, without the other
// protocols. A server can be closed in an orderly way or as a crash would, and opened again on the same data.

import { onTestFinished } from "vitest";
import { systemClock } from "../../src/clock.ts";
import { type GrpcChannel, openChannel } from "../../src/grpc/client.ts";
import type { Json, JsonObject } from "../../src/json.ts";
import { createMetrics } from "../../src/metrics.ts";
import type { ListedComponent } from "../../src/protocol/stepflow/api/components.ts";
import { openStepflowApi, type StepflowApi } from "../../src/protocol/stepflow/api/open.ts";
import { type Engine, openEngine } from "../../src/server/engine.ts";
import { listen } from "../../src/server/http.ts";
import { createLogger } from "../../src/server/logger.ts";
import { temporaryFolder } from "./parts.ts";

// biome-ignore lint/suspicious/noExplicitAny: a test reads fields of answers and says what they must be.
type Body = any;

export interface RestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface StepflowServer {
  readonly url: string;
  readonly engine: Engine;
  readonly api: StepflowApi;
  readonly data: string;
  readonly channel: GrpcChannel;
  call(method: string, path: string, body?: Json | string | Uint8Array, headers?: Record<string, string>): Promise<RestAnswer>;
  /** Stores a flow and answers its id. */
  store(flow: JsonObject): Promise<string>;
  /** Runs a flow for one input, or for several, and answers what came of it. */
  run(flow: JsonObject | string, inputs: Json[], more?: JsonObject): Promise<Body>;
  /** Ends it as a crash would: nothing is given back, nothing reported. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

export interface StepflowServerOptions {
  data?: string;
  folder?: string;
  environment?: { readonly [name: string]: string };
  origins?: string[];
}

export async function startStepflow(options: StepflowServerOptions = {}): Promise<StepflowServer> {
  const data = options.data ?? temporaryFolder();
  const engine = await openEngine({ directory: data });
  const logger = createLogger({ level: "silent", write: () => {}, clock: systemClock });
  const api = openStepflowApi({
    ...engine,
    version: "0.0.0",
    folder: options.folder ?? data,
    servesBlobs: true,
    environment: options.environment ?? {},
    components: (builtins: readonly ListedComponent[]) => ({
      list: async () => ({ listed: [{ plugin: "builtin", components: builtins }], failed: [] }),
    }),
    failed: () => {},
  });
  await api.start();
  const server = await listen({
    groups: [api.rest],
    methods: api.grpc,
    port: 0,
    metrics: createMetrics(),
    logger,
    ...(options.origins === undefined ? {} : { origins: options.origins }),
  });
  const channel = openChannel(server.url, { clock: systemClock });
  let closed: Promise<void> | undefined;
  const end = (orderly: boolean) => {
    closed ??= (async () => {
      await channel.close();
      if (orderly) await api.close();
      const listener = server.close(0);
      engine.board.dismiss();
      await listener;
      await engine.close();
    })();
    return closed;
  };
  onTestFinished(() => end(true));
  const call: StepflowServer["call"] = (method, path, body, headers) => callRest(server.url, method, path, body, headers);
  const store = async (flow: JsonObject) => (await call("POST", "/flows", { flow })).body.flowId as string;
  return {
    url: server.url,
    engine,
    api,
    data,
    channel,
    call,
    store,
    async run(flow, inputs, more = {}) {
      const flowId = typeof flow === "string" ? flow : await store(flow);
      return (await call("POST", "/runs", { flowId, input: inputs, wait: true, ...more })).body;
    },
    crash: () => end(false),
    close: () => end(true),
  };
}

async function callRest(
  url: string,
  method: string,
  path: string,
  body: Json | string | Uint8Array | undefined,
  headers: Record<string, string> = {},
): Promise<RestAnswer> {
  const raw = typeof body === "string" || body instanceof Uint8Array || body === undefined;
  const answer = await fetch(`${url}/api/v1${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
    ...(body === undefined ? {} : { body: raw ? (body as string) : JSON.stringify(body) }),
  });
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const text = Buffer.from(bytes).toString("utf8");
  const isJson = answer.headers.get("content-type") === "application/json";
  return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : bytes };
}

/** A flow of one step. */
export function oneStep(component: string, input: Json, more: JsonObject = {}): JsonObject {
  return { name: "one", description: "One step.", steps: [{ id: "s1", component, input }], output: { $step: "s1" }, ...more };
}
