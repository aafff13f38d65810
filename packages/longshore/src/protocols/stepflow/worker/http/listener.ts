// The worker's HTTP server: POST / for messages, GET /health. Mistakes of HTTP are answered here; mistakes of the message, in service.ts.
// wire/http/README.md, "Requests".

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { ByteBudget } from "../../../../core/byte-budget.ts";
import type { Clock } from "../../../../core/clock.ts";
import { LongshoreError } from "../../../../core/errors.ts";
import { acceptsBothForms, instanceHeader, isJson } from "../../wire/http/headers.ts";
import { bodyOf } from "./body.ts";
import { Exchange } from "./exchange.ts";
import type { Settings } from "./options.ts";
import { HttpRefusal } from "./refusal.ts";
import type { WorkerService } from "./service.ts";

export interface Listener {
  readonly port: number;
  /** Ends every connection and resolves when all are closed. May be called twice. */
  close(): Promise<void>;
}

export interface ListenerOptions {
  readonly settings: Settings;
  readonly service: WorkerService;
  readonly clock: Clock;
  /** True from when no new work is taken. */
  readonly isDraining: () => boolean;
  /** Shared by the bodies that are being received; tests make it small. */
  readonly receiving?: ByteBudget;
}

/** Clients of the reference keep idle connections for 90 s. One that we close first may be chosen for a request at that very moment. */
const keepAliveMs = 120_000;
/** How long a request may take to arrive: the largest at a megabyte a second, and runtimes are near. */
const requestMsMax = 60_000;
/** Bodies of all requests that are being received together: the protocol has no authentication, so any program may begin one. */
const receivingBytesMax = 256 * 1024 * 1024;
/** How long the last answers may take to leave: what is left by then are lists and refusals. */
const closeMsMax = 1_000;
/** Every running and waiting request has a connection, answers to calls come on others, and some are idle. */
const connectionsMax = 10_000;
/** Requests on one connection that are not answered. Runtimes send one; a caller with more is answered in order, and keeps slots meanwhile. */
const unansweredMax = 16;

export async function listen({ receiving = new ByteBudget(receivingBytesMax), ...around }: ListenerOptions): Promise<Listener> {
  const options = { ...around, receiving, underWay: new WeakMap() };
  const { host, port } = options.settings;
  const server = createServer(
    { keepAliveTimeout: keepAliveMs, requestTimeout: requestMsMax, joinDuplicateHeaders: true },
    (request, response) => {
      void answer(request, response, options);
    },
  );
  server.maxConnections = connectionsMax;
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error) => {
      const message = `The worker cannot listen on ${host}:${port}: ${error.message}.`;
      reject(new LongshoreError("LONGSHORE_BAD_CONFIG", message, { cause: error, detail: { field: "port" } }));
    });
    server.listen({ port, host }, resolve);
  });
  // A later error concerns one connection, which is closed by then.
  server.on("error", () => {});
  return { port: (server.address() as AddressInfo).port, close: () => close(server, options.clock) };
}

/** What is being answered may be answered; connections that are idle, or take longer, are closed. */
function close(server: Server, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const cut = clock.at(clock.now() + closeMsMax, () => server.closeAllConnections());
    server.close(() => {
      cut();
      resolve();
    });
    server.closeIdleConnections();
  });
}

interface Answering extends Required<ListenerOptions> {
  /** What is being answered, by its connection. */
  readonly underWay: WeakMap<Socket, Set<Exchange>>;
}

/** False where there are too many on the connection, which is closed then. */
function attend(socket: Socket, response: ServerResponse, exchange: Exchange, { underWay }: Answering): boolean {
  let exchanges = underWay.get(socket);
  if (exchanges === undefined) {
    const all = new Set<Exchange>();
    underWay.set(socket, all);
    socket.once("close", () => {
      for (const each of all) each.lost();
    });
    exchanges = all;
  }
  if (exchanges.size >= unansweredMax) {
    socket.destroy();
    return false;
  }
  exchanges.add(exchange);
  response.once("finish", () => exchanges.delete(exchange));
  return true;
}

async function answer(request: IncomingMessage, response: ServerResponse, options: Answering): Promise<void> {
  const { settings, service, clock, isDraining, receiving } = options;
  // A client that is answered while the worker stops should not come back on this connection.
  if (isDraining()) response.setHeader("connection", "close");
  // A broken connection is reported by the end of its response.
  request.on("error", () => {});
  response.on("error", () => {});
  const path = (request.url ?? "/").split("?")[0] ?? "/";
  if (path === "/health" && isRead(request)) return health(request, response, options);
  const exchange = new Exchange(response, settings.instanceId, clock);
  if (!attend(request.socket, response, exchange, options)) return;
  try {
    check(request, path);
    const text = await bodyOf(request, settings.bodyBytesMax, receiving);
    if (text !== undefined) await service.take(text, exchange);
  } catch (error) {
    service.refuse(error, exchange);
    // The connection is good for the next request once this body has passed.
    request.resume();
  }
}

/** Throws for what is wrong with the request before its body is read. */
function check({ method, headers }: IncomingMessage, path: string): void {
  if (path === "/health") throw new HttpRefusal(405, `${method} is not answered here, expected GET.`, { allow: "GET, HEAD" });
  if (path !== "/")
    throw new HttpRefusal(404, `There is nothing at ${path}; send messages to POST /, and read the state from GET /health.`);
  if (method !== "POST") throw new HttpRefusal(405, `${method} is not answered here, expected POST.`, { allow: "POST" });
  // Runtimes are no web pages. A page that could reach this port would otherwise run components.
  if (headers.origin !== undefined) throw new HttpRefusal(403, "Requests of web pages are not answered.");
  const { "content-type": type, "content-encoding": encoding, accept } = headers;
  if (!isJson(type)) throw new HttpRefusal(415, `Content-Type is ${shown(type)}, expected application/json.`);
  if (encoding !== undefined && encoding !== "identity")
    throw new HttpRefusal(415, `Content-Encoding is ${shown(encoding)}, expected none.`);
  if (!acceptsBothForms(accept)) throw new HttpRefusal(406, `Accept is ${shown(accept)}, expected application/json, text/event-stream.`);
}

function shown(header: string | undefined): string {
  return header === undefined ? "missing" : JSON.stringify(header);
}

function isRead({ method }: IncomingMessage): boolean {
  return method === "GET" || method === "HEAD";
}

function health(request: IncomingMessage, response: ServerResponse, { settings, clock, isDraining }: ListenerOptions): void {
  request.resume();
  const { instanceId, service } = settings;
  const status = isDraining() ? "draining" : "healthy";
  const body = JSON.stringify({ status, instanceId, timestamp: new Date(clock.now()).toISOString(), service });
  response.writeHead(status === "healthy" ? 200 : 503, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    [instanceHeader]: instanceId,
  });
  // Node leaves the body of an answer to HEAD out by itself.
  response.end(body);
}
