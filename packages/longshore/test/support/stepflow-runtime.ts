// The runtime's side of Stepflow over HTTP, as the reference plays it: one POST for each message, a minimal SSE parser, and an answer to
// each call of a component in a POST of its own.

import { Agent, type ClientRequest, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import type { Task } from "../../src/core/task.ts";
import { blobIdOfJson } from "../../src/protocols/stepflow/wire/blob-id.ts";
import type { StepflowHttpOptions } from "../../src/protocols/stepflow/worker/index.ts";
import { stepflowHttp } from "../../src/protocols/stepflow/worker/index.ts";
import type { Notice } from "../../src/runner/notices.ts";
import { TestClock } from "../../src/testing/clock.ts";
import { type WorkHandle, type WorkOptions, work } from "../../src/work.ts";

// biome-ignore lint/suspicious/noExplicitAny: answers are looked into by what a test expects of them.
export type Any = any;

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly json: Any;
}

export interface Execution {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly form: "json" | "sse";
  /** The final message. */
  readonly answer: Any;
  /** Calls that the component made, in order. */
  readonly calls: Any[];
  /** What the worker replied to each answer of ours. */
  readonly acks: Answer[];
  /** The bytes of the stream. */
  readonly raw: string;
}

/** Returns one call of a component; undefined leaves it without an answer. */
export type Respond = (
  call: Any,
) =>
  | { readonly result?: unknown; readonly error?: unknown }
  | undefined
  | Promise<{ readonly result?: unknown; readonly error?: unknown } | undefined>;

export interface ExecuteOptions {
  readonly id?: string | number;
  readonly attempt?: number;
  readonly observability?: unknown;
  readonly respond?: Respond;
  /** Called when the request has been sent, so that a test can end it. */
  readonly sent?: (request: ClientRequest) => void;
}

const headersDefault = { "content-type": "application/json", accept: "application/json, text/event-stream" };

export class Runtime {
  readonly url: string;
  readonly agent = new Agent({ keepAlive: true });
  #ids = 0;

  constructor(url: string) {
    this.url = url;
  }

  close(): void {
    this.agent.destroy();
  }

  /** The headers; `undefined` removes one. */
  async post(body: string | Uint8Array, headers: Record<string, string | undefined> = {}, path = "/", method = "POST"): Promise<Answer> {
    const { response, text } = await this.#send(body, headers, path, method, async (incoming) => textOf(incoming));
    let json: unknown;
    try {
      json = JSON.parse(text);
    } catch {
      // Not every answer is JSON.
    }
    return { status: response.statusCode ?? 0, headers: response.headers, text, json };
  }

  get(path: string): Promise<Answer> {
    return this.post("", { "content-type": undefined, accept: undefined }, path, "GET");
  }

  send(message: unknown, headers?: Record<string, string | undefined>): Promise<Answer> {
    return this.post(JSON.stringify(message), headers);
  }

  async call(method: string, params: unknown = {}): Promise<Any> {
    return (await this.send({ jsonrpc: "2.0", id: this.#id(), method, params })).json;
  }

  /** The handshake of a runtime of this dialect. */
  async handshake(dialect: "A" | "B" = "A", capabilities?: unknown): Promise<Any> {
    const params = dialect === "A" ? { runtime_protocol_version: 1 } : { runtimeProtocolVersion: 1, capabilities: capabilities ?? {} };
    const answer = await this.call("initialize", params);
    await this.send({ jsonrpc: "2.0", method: "initialized", params: {} });
    return answer.result;
  }

  async execute(component: string, input: unknown = {}, options: ExecuteOptions = {}): Promise<Execution> {
    const { id = this.#id(), attempt = 1, observability = {}, respond = () => undefined } = options;
    const params = { component, input, attempt, observability };
    const body = JSON.stringify({ jsonrpc: "2.0", id, method: "components/execute", params });
    const calls: Any[] = [];
    const acks: Promise<Answer>[] = [];
    let answer: Any;
    const { response, text } = await this.#send(
      body,
      {},
      "/",
      "POST",
      async (incoming) => {
        if (!incoming.headers["content-type"]?.includes("text/event-stream")) return textOf(incoming);
        return this.#readEvents(incoming, (message) => {
          if (message.method === undefined) answer = message;
          else {
            calls.push(message);
            acks.push(this.#respond(message, respond, incoming.headers));
          }
        });
      },
      options.sent,
    );
    const form = response.headers["content-type"]?.includes("text/event-stream") ? "sse" : "json";
    if (form === "json") answer = JSON.parse(text);
    const answered = (await Promise.all(acks)).filter((ack) => ack !== undefined);
    return { status: response.statusCode ?? 0, headers: response.headers, form, answer, calls, acks: answered, raw: text };
  }

  async #respond(call: Any, respond: Respond, headers: IncomingHttpHeaders): Promise<Answer> {
    const said = await respond(call);
    // The request gets no answer on purpose.
    if (said === undefined) return undefined as unknown as Answer;
    const instance = headers["stepflow-instance-id"] as string | undefined;
    return this.send({ jsonrpc: "2.0", id: call.id, ...said }, instance === undefined ? {} : { "stepflow-instance-id": instance });
  }

  /**
   * Reads as the reference does: chunks are decoded one by one, events are split at LF LF, and the first line that begins with `data: `
   * counts.
   */
  async #readEvents(incoming: IncomingMessage, take: (message: Any) => void): Promise<string> {
    const decoder = new TextDecoder("utf-8", { fatal: true });
    let whole = "";
    let buffer = "";
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      const text = decoder.decode(chunk);
      whole += text;
      buffer += text;
      for (let at = buffer.indexOf("\n\n"); at >= 0; at = buffer.indexOf("\n\n")) {
        const line = buffer
          .slice(0, at)
          .split("\n")
          .find((each) => each.startsWith("data: "));
        buffer = buffer.slice(at + 2);
        if (line !== undefined) take(JSON.parse(line.slice("data: ".length)));
      }
    }
    return whole;
  }

  #send(
    body: string | Uint8Array,
    headers: Record<string, string | undefined>,
    path: string,
    method: string,
    read: (incoming: IncomingMessage) => Promise<string>,
    sent: (request: ClientRequest) => void = () => {},
  ): Promise<{ response: IncomingMessage; text: string }> {
    return new Promise((resolve, reject) => {
      const all = { ...headersDefault, "content-length": String(Buffer.byteLength(body)), ...headers };
      const kept = Object.fromEntries(Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined));
      const outgoing = request(`${this.url}${path}`, { method, headers: kept, agent: this.agent }, (response) => {
        read(response).then((text) => resolve({ response, text }), reject);
      });
      outgoing.on("error", reject);
      outgoing.end(body);
      sent(outgoing);
    });
  }

  #id(): string {
    return `request-${this.#ids++}`;
  }
}

async function textOf(incoming: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += chunk;
  return text;
}

export interface Setup extends AsyncDisposable {
  readonly runtime: Runtime;
  readonly worker: WorkHandle;
  readonly clock: TestClock;
  readonly notices: Notice[];
}

export interface SetupOptions {
  readonly tasks: Task[];
  readonly http?: StepflowHttpOptions;
  readonly work?: Partial<WorkOptions>;
  /** `none`: the test makes the handshake. `A` by default. */
  readonly handshake?: "A" | "B" | "none";
  readonly capabilities?: unknown;
}

/** A worker on a port of its own, and a runtime after the handshake with it. */
export async function setup({ tasks, http, work: more, handshake = "A", capabilities }: SetupOptions): Promise<Setup> {
  const clock = new TestClock();
  const notices: Notice[] = [];
  const transport = stepflowHttp({ announce: false, env: {}, ...http });
  const logger = (notice: Notice) => void notices.push(notice);
  const worker = await work({ tasks, on: transport, signals: false, clock, logger, ...more });
  const runtime = new Runtime(transport.url as string);
  if (handshake !== "none") await runtime.handshake(handshake, capabilities);
  return {
    runtime,
    worker,
    clock,
    notices,
    async [Symbol.asyncDispose]() {
      runtime.close();
      await worker.stop({ force: true });
    },
  };
}

/** Blobs as a runtime keeps them, by the calls of HTTP-A. */
export function blobStore(): { readonly kept: Map<string, unknown>; readonly respond: Respond } {
  const kept = new Map<string, unknown>();
  const respond: Respond = ({ method, params }) => {
    if (method === "blobs/put") {
      const id = blobIdOfJson(params.data);
      kept.set(id, params.data);
      return { result: { blob_id: id } };
    }
    if (!kept.has(params.blob_id)) return { error: { code: -32008, message: "Blob not found" } };
    return { result: { data: kept.get(params.blob_id), blob_type: "data" } };
  };
  return { kept, respond };
}
