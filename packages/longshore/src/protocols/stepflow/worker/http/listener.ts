// The worker's HTTP server: POST / for messages, GET /health. This file replies to HTTP errors, and service.ts to errors in a message.
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
  /** True once the worker takes no new work. */
  readonly isDraining: () => boolean;
  /** The shared budget of bodies that are being received; tests make it small. */
  readonly receiving?: ByteBudget;
}

/**
 * Clients of the reference keep idle connections for 90 s. If we closed one earlier, a client could send a request on it at that moment.
 */
const keepAliveMs = 120_000;
/**
 * The timeout for receiving a request: enough for the largest body at one megabyte per second. Runtimes are usually in the same network.
 */
const requestMsMax = 60_000;
/** Budget of all bodies that are being received: the protocol has no authentication, so any program may send one. */
const receivingBytesMax = 256 * 1024 * 1024;
/** Time for the last answers to be sent. Only lists and refusals are left at that point. */
const closeMsMax = 1_000;
/** Maximum number of connections. Each running or waiting request has one, answers to calls arrive on others, and some are idle. */
const connectionsMax = 10_000;
/**
 * Maximum number of open requests on one connection. Runtimes send one. Further requests get their responses in order, and occupy slots
 * meanwhile.
 */
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
  // A later error concerns one connection, which is already closed.
  server.on("error", () => {});
  return { port: (server.address() as AddressInfo).port, close: () => close(server, options.clock) };
}

/** Lets answers finish until `closeMsMax`. Closes idle connections at once. */
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
  /** The requests that are being answered, by connection. */
  readonly underWay: WeakMap<Socket, Set<Exchange>>;
}

/** Returns false when the connection has too many requests; the connection is then closed. */
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
  // A client that gets a response while the worker stops should not use this connection again.
  if (isDraining()) response.setHeader("connection", "close");
  // A broken connection is reported by the end of the response.
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
    // The body is read to its end, so that the connection can carry the next request.
    request.resume();
  }
}

/** Throws when the request is refused before its body is read. */
function check({ method, headers }: IncomingMessage, path: string): void {
  if (path === "/health") throw new HttpRefusal(405, `${method} is not allowed here, expected GET.`, { allow: "GET, HEAD" });
  if (path !== "/")
    throw new HttpRefusal(404, `There is nothing at ${path}; send messages to POST /, and read the state from GET /health.`);
  if (method !== "POST") throw new HttpRefusal(405, `${method} is not allowed here, expected POST.`, { allow: "POST" });
  // A runtime is not a web page. Without this check, a page that can reach this port could run components.
  if (headers.origin !== undefined) throw new HttpRefusal(403, "Requests of web pages are refused.");
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
  // Node omits the body of an answer to HEAD.
  response.end(body);
}
