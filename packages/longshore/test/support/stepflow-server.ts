// A whole server with a data file and a free loopback port, and clients that send it literal Stepflow requests. A component `/hold` (or any
// other without a worker) is in the lane of its name, which the test serves itself. The server can end like in a crash and be opened again on
// the same data.

import { onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import type { Json, JsonObject } from "../../src/core/json/json.ts";
import { createLogger } from "../../src/core/logger.ts";
import { createMetrics } from "../../src/core/metrics.ts";
import type { TaskRow } from "../../src/engine/board/task.ts";
import { type GrpcChannel, openChannel } from "../../src/net/grpc/client.ts";
import { parseToken } from "../../src/net/listener/auth.ts";
import type { StepflowConfig } from "../../src/protocols/stepflow/server/config/config.ts";
import { defaultConfig } from "../../src/protocols/stepflow/server/config/default.ts";
import { preparedWith } from "../../src/protocols/stepflow/server/prepare.ts";
import type { ServeOptions } from "../../src/server/config.ts";
import { type Engine, openEngine } from "../../src/server/engine.ts";
import { plainDialects, reservedLanes } from "../../src/server/protocols.ts";
import { openServerPort } from "../../src/server/server-port.ts";
import { EventReader } from "./event-reader.ts";
import { temporaryFolder } from "./parts.ts";
import { protocolsOn } from "./protocols.ts";

// biome-ignore lint/suspicious/noExplicitAny: a test reads fields of answers and says what they must be.
export type Body = any;

export interface RestAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Body;
}

export interface StepflowServer {
  readonly url: string;
  readonly engine: Engine;
  readonly data: string;
  readonly channel: GrpcChannel;
  call(method: string, path: string, body?: Json | Uint8Array, headers?: Record<string, string>): Promise<RestAnswer>;
  /** Stores a flow and returns its id. */
  store(flow: JsonObject): Promise<string>;
  /** Runs a flow for its inputs and returns the results. */
  run(flow: JsonObject | string, inputs: Json[], more?: JsonObject): Promise<Body>;
  /** Starts the same without waiting, and returns the run's id. */
  submit(flow: JsonObject | string, inputs: Json[], more?: JsonObject): Promise<string>;
  /** The run once it has ended. */
  ended(runId: string): Promise<Body>;
  events(runId: string, query?: string): Promise<EventReader>;
  /** Waits for the next task of a lane; undefined when there is none and `wait` is false. */
  claim(lane: string, wait?: boolean): Promise<TaskRow>;
  none(lane: string): Promise<boolean>;
  complete(task: TaskRow, output: Json): Promise<void>;
  /** Ends the server as a crash does: nothing is given back or reported. */
  crash(): Promise<void>;
  close(): Promise<void>;
}

export interface StepflowServerOptions extends Pick<ServeOptions, "origins"> {
  data?: string;
  config?: StepflowConfig;
  tokens?: readonly string[];
}

export async function startStepflow(options: StepflowServerOptions = {}): Promise<StepflowServer> {
  const { data = temporaryFolder(), config = defaultConfig(), tokens = [], origins } = options;
  const stepflow = preparedWith(config, { reservedLanes });
  const engine = await openEngine({ directory: data, dialects: [...(await plainDialects()), ...stepflow.dialects] });
  const door = await openServerPort({
    engine,
    protocols: await protocolsOn(engine, { stepflow }),
    options: { port: 0, ...(origins === undefined ? {} : { origins }) },
    tokens: tokens.map((token, at) => parseToken(token, `tokens[${at}]`)),
    logger: createLogger({ level: "silent", write: () => {}, clock: systemClock }),
    metrics: createMetrics(),
  });
  const channel = openChannel(door.url);
  let closed: Promise<void> | undefined;
  const end = (orderly: boolean) => {
    closed ??= (async () => {
      await channel.close();
      // Nothing can be written any more, whatever is still in progress.
      if (!orderly) await engine.close();
      const doorClosed = door.close(orderly ? 1_000 : 0);
      engine.board.dismiss();
      await doorClosed;
      await engine.close();
    })();
    return closed;
  };
  onTestFinished(() => end(true));
  const { call, store } = restOf(door.url);
  const submit = async (flow: JsonObject | string, inputs: Json[], more: JsonObject): Promise<Body> => {
    const flowId = typeof flow === "string" ? flow : await store(flow);
    return (await call("POST", "/runs", { flowId, input: inputs, ...more })).body;
  };
  return {
    ...{ url: door.url, engine, data, channel, call, store },
    run: (flow, inputs, more = {}) => submit(flow, inputs, { wait: true, ...more }),
    submit: async (flow, inputs, more = {}) => (await submit(flow, inputs, more)).summary.runId,
    ended: async (runId) => (await call("GET", `/runs/${runId}?wait=true`)).body,
    events: (runId, query = "") => EventReader.open(`${door.url}/api/v1/runs/${runId}/events${query}`),
    ...workOn(engine),
    crash: () => end(false),
    close: () => end(true),
  };
}

function workOn({ board }: Engine): Pick<StepflowServer, "claim" | "none" | "complete"> {
  const claimOne = async (lane: string, waitMs: number) =>
    (await board.claim({ reach: { names: [lane], labels: [] }, serves: lane, holder: "the test", termMs: 600_000, waitMs }))[0];
  return {
    async claim(lane) {
      const task = await claimOne(lane, 60_000);
      if (task === undefined) throw new Error(`Nothing has come to the lane ${lane}.`);
      return task;
    },
    none: async (lane) => (await claimOne(lane, 0)) === undefined,
    async complete({ id: taskId, grant }, output) {
      const verdict = await board.complete({ taskId, grant }, JSON.stringify(output));
      if (verdict !== "ok") throw new Error(`The report on ${taskId} was answered ${verdict}.`);
    },
  };
}

function restOf(url: string): Pick<StepflowServer, "call" | "store"> {
  const call: StepflowServer["call"] = async (method, path, body, headers = {}) => {
    const sent = body === undefined ? undefined : body instanceof Uint8Array ? body : JSON.stringify(body);
    const answer = await fetch(path.startsWith("/api/") ? `${url}${path}` : `${url}/api/v1${path}`, {
      method,
      headers: { ...(body === undefined ? {} : { "content-type": "application/json" }), ...headers },
      ...(sent === undefined ? {} : { body: sent as string }),
    });
    const bytes = new Uint8Array(await answer.arrayBuffer());
    const isJson = answer.headers.get("content-type") === "application/json";
    return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(Buffer.from(bytes).toString("utf8")) : bytes };
  };
  return { call, store: async (flow) => (await call("POST", "/flows", { flow })).body.flowId as string };
}

/** A text that is sent as the body, unchanged. */
export const raw = (text: string): Uint8Array => Buffer.from(text);

/** A flow of one step. */
export function oneStep(component: string, input: Json, more: JsonObject = {}): JsonObject {
  return { name: "one", description: "One step.", steps: [{ id: "s1", component, input }], output: { $step: "s1" }, ...more };
}
