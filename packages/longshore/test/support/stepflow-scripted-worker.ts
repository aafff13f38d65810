// A Stepflow worker over HTTP. The test writes every answer, if it wants to byte for byte.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { Any } from "./stepflow-runtime.ts";

export interface Received {
  readonly message: Any;
  readonly headers: IncomingMessage["headers"];
  readonly response: ServerResponse;
  /** Answers with the result of this request. */
  result(result: unknown): void;
  error(code: number, message: string, data?: unknown, status?: number): void;
  /** Begins a stream; with the id of this process by default. */
  stream(instanceId?: string | null): void;
  /** One event of a stream. */
  event(message: unknown): void;
  send(status: number, body: string, contentType?: string): void;
  /** Breaks the connection. */
  cut(): void;
}

/** Returns true when it handled the request. Everything else is done as a well-behaved worker does it. */
export type Script = (received: Received) => boolean | Promise<boolean>;

export interface ScriptedWorker {
  readonly url: string;
  readonly port: number;
  /** Everything that was received, in order. */
  readonly received: Received[];
  /** The methods, or `answer` for an answer to a call of the worker. */
  readonly methods: string[];
  /** Answers to calls of the worker, by the id of the call. */
  answer(id: string | number): Promise<Any>;
  close(): Promise<void>;
}

export interface ScriptOptions {
  readonly script?: Script;
  /** The answer to `initialize`; dialect A by default. */
  readonly initialize?: unknown;
  readonly components?: readonly unknown[];
  readonly port?: number;
}

export async function scriptedWorker(options: ScriptOptions = {}): Promise<ScriptedWorker> {
  const received: Received[] = [];
  const answers = new Map<string | number, Any>();
  const waiting = new Map<string | number, (answer: Any) => void>();
  const server = createServer((request, response) => {
    void readBody(request).then(async (text) => {
      if (request.method === "GET") return void response.writeHead(200).end('{"status":"healthy"}');
      const message = JSON.parse(text) as Any;
      const one = receivedOf(message, request, response);
      received.push(one);
      if (message.method === undefined) {
        answers.set(message.id, message);
        waiting.get(message.id)?.(message);
      }
      if ((await options.script?.(one)) === true) return;
      behave(one, options);
    });
  });
  await listening(server, options.port ?? 0);
  const { port } = server.address() as AddressInfo;
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  onTestFinished(close);
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    received,
    get methods() {
      return received.map(({ message }) => message.method ?? "answer");
    },
    answer: (id) =>
      new Promise((resolve) => {
        const known = answers.get(id);
        if (known === undefined) waiting.set(id, resolve);
        else resolve(known);
      }),
    close,
  };
}

/** As the Python SDK sends it. */
function behave(one: Received, { initialize = { server_protocol_version: 1 }, components = [] }: ScriptOptions): void {
  const { method, params } = one.message;
  if (method === "initialize") one.result(initialize);
  else if (method === "components/list") one.result({ components });
  else if (method === "components/execute") one.result({ output: params.input });
  else one.send(202, '""');
}

function receivedOf(message: Any, request: IncomingMessage, response: ServerResponse): Received {
  const send = (status: number, body: string, contentType = "application/json") =>
    void response.writeHead(status, { "content-type": contentType }).end(body);
  return {
    message,
    headers: request.headers,
    response,
    result: (result) => send(200, JSON.stringify({ jsonrpc: "2.0", id: message.id, result })),
    error: (code, text, data, status = 200) =>
      send(
        status,
        JSON.stringify({ jsonrpc: "2.0", id: message.id, error: { code, message: text, ...(data === undefined ? {} : { data }) } }),
      ),
    stream: (instanceId = "process-1") =>
      void response
        .writeHead(200, {
          "content-type": "text/event-stream; charset=utf-8",
          ...(instanceId === null ? {} : { "stepflow-instance-id": instanceId }),
        })
        .flushHeaders(),
    event: (event) => void response.write(`data: ${JSON.stringify(event)}\n\n`),
    send,
    cut: () => void response.socket?.resetAndDestroy(),
  };
}

async function readBody(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

function listening(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
}
