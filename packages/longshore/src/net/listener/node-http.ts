// node:http without a port of its own: it serves connections that are handed over, with their first bytes.

import { createServer, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import { type LoopTurns, requestUnits, type Share } from "../../core/slices/loop-turns.ts";
import type { Stalls } from "../../core/stalls.ts";
import { BodyRequest } from "./body.ts";
import type { Connections } from "./connections.ts";
import type { Dispatch } from "./dispatch.ts";
import { pathOf } from "./exchange.ts";
import type { HttpLimits } from "./limits.ts";
import { NodeExchange } from "./node-exchange.ts";
import type { Router } from "./router.ts";
import { SocketThrottle } from "./socket-throttle.ts";
import type { Traffic } from "./traffic.ts";

export interface NodeHttpOptions {
  router: Router;
  dispatch: Dispatch;
  connections: Connections;
  traffic: Traffic;
  limits: HttpLimits;
  /** The budget of all bodies that are being received. */
  receiving: ByteBudget;
  /** Ends requests that make no progress. */
  stalls: Stalls;
  /** Limits the work of connections in one turn of the event loop. */
  turns: LoopTurns;
}

export interface NodeHttp {
  /** Serves this socket from now on; `bytes` are received but not parsed yet. */
  take(socket: Socket, bytes: Buffer): void;
  /** Stops the checks for slow clients. The owner of the sockets closes them. */
  close(): void;
}

export function createNodeHttp({ router, dispatch, connections, traffic, limits, receiving, stalls, turns }: NodeHttpOptions): NodeHttp {
  const server = createServer({
    IncomingMessage: BodyRequest,
    maxHeaderSize: limits.headerBytes,
    // When a request has two Host or Authorization headers, Node would use the first, but a proxy may have checked the second. So both are
    // joined: the result is not valid, and the request is refused.
    joinDuplicateHeaders: true,
    headersTimeout: Math.min(limits.headersMs, limits.requestMs),
    requestTimeout: limits.requestMs,
    connectionsCheckingInterval: limits.checkMs,
    keepAliveTimeout: limits.keepAliveMs,
  });
  const throttles = new WeakMap<Socket, SocketThrottle>();
  const serve = (request: BodyRequest, response: NodeExchange["response"], awaitsContinue: boolean) => {
    const connection = connections.of(request.socket);
    // The socket closed after the bytes arrived: there is no client to respond to.
    if (connection === undefined) return;
    countWork(request, response, throttles.get(request.socket)?.share, traffic);
    const path = pathOf(request.url as string);
    const match = router.find(request.method as string, path);
    const options = { awaitsContinue, discardBytes: limits.discardBytes, valuesMax: limits.payloadValues, budget: receiving, stalls };
    dispatch(new NodeExchange(connection, request, response, path, match, options), match);
  };
  server.on("request", (request, response) => serve(request, response, false));
  server.on("checkContinue", (request, response) => serve(request, response, true));
  server.on("clientError", (error: NodeJS.ErrnoException, socket) => refuseBroken(error, socket as Socket, traffic));
  // Node starts its checks for slow clients when a server listens, which this server never does itself.
  server.emit("listening");

  return {
    take(socket, bytes) {
      // A socket that has closed is served as one of an unknown client: nothing comes from it.
      const connection = connections.of(socket) ?? { socket, known: false };
      const throttle = new SocketThrottle(connection, turns, () => server.emit("connection", socket));
      throttles.set(socket, throttle);
      throttle.begin(bytes);
    },
    close: () => void server.close(),
  };
}

function countWork(request: BodyRequest, response: ServerResponse, share: Share | undefined, traffic: Traffic): void {
  share?.spend(requestUnits);
  request.share = share;
  request.onTinyPieces = () => {
    traffic.broken(400);
    endWith(request.socket, response, 400);
  };
}

/**
 * Bytes that are not a request have no route and no group. The response is only a status line, and then the connection ends. The bytes are
 * not logged.
 */
function refuseBroken(error: NodeJS.ErrnoException, socket: Socket, traffic: Traffic): void {
  const statuses: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };
  const status = statuses[error.code ?? ""] ?? 400;
  if (error.code !== "ECONNRESET") traffic.broken(status);
  endWith(socket, (socket as { _httpMessage?: ServerResponse | null })._httpMessage, status);
}

/**
 * Sends only a status line and closes the socket. When a response has already begun, only closes the socket, because the status would mix
 * with the response.
 */
function endWith(socket: Socket, busy: Pick<ServerResponse, "headersSent"> | null | undefined, status: number): void {
  if (socket.writable && !busy?.headersSent) hangUp(socket, status);
  else socket.destroySoon();
}

export function hangUp(socket: Socket, status: number): void {
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
  // Sends what was written, then closes. `end` alone is not enough: a peer that never closes its side would keep the socket open.
  socket.destroySoon();
}
