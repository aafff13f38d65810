// Writes a reply: head and body in one write where the body is at hand, a pipe where it is a stream, an open end where it is events.
// A reply whose client has gone is given back to its route instead.

import { pipeline, Readable } from "node:stream";
import type { HttpReply } from "../http.ts";
import { discardRest } from "./body.ts";
import type { Connections } from "./connections.ts";
import type { Exchange } from "./exchange.ts";
import type { HttpLimits } from "./limits.ts";
import type { Logger } from "./logger.ts";
import { type EventStreams, eventHeaders } from "./sse.ts";

export interface ReplyWriterOptions {
  connections: Connections;
  streams: EventStreams;
  logger: Logger;
  limits: Pick<HttpLimits, "discardBytes">;
  /** Called for each reply whose client had gone. */
  onUndelivered: () => void;
}

export interface ReplyWriter {
  /** Writes the reply, whatever has become of the client. Throws only for a reply that HTTP cannot carry, with nothing written. */
  write(exchange: Exchange, reply: HttpReply): void;
}

export function createReplyWriter(options: ReplyWriterOptions): ReplyWriter {
  const { connections, streams, logger, limits } = options;

  function write(exchange: Exchange, reply: HttpReply): void {
    const { request, response } = exchange;
    const { body, undelivered } = reply;
    if (undelivered !== undefined) exchange.undelivered = () => giveBack(undelivered);
    if (!request.socket.writable) return abandon(exchange, body);
    if (connections.closing) response.shouldKeepAlive = false;
    if (exchange.bodyLeft && !request.complete) leaveBody(exchange);
    if (reply.events !== undefined) writeEvents(exchange, reply, reply.events);
    else if (body instanceof Readable) writeStream(exchange, reply, body);
    else writeWhole(exchange, reply, body);
  }

  /** The usual reply. String bodies leave in the same packet as their head. */
  function writeWhole(exchange: Exchange, reply: HttpReply, body: string | Uint8Array | undefined): void {
    const { response } = exchange;
    const head = headOf(exchange, reply.headers);
    if (mayHaveLength(reply.status)) head.push("content-length", lengthText(body));
    response.writeHead(reply.status, head);
    if (exchange.undelivered === undefined) {
      response.end(body);
      connections.finish(exchange.connection, exchange);
    } else {
      // Until the system has taken the bytes the socket may still close; then Connections tells the exchange.
      response.end(body, () => delivered(exchange));
    }
  }

  function writeStream(exchange: Exchange, reply: HttpReply, body: Readable): void {
    const { response } = exchange;
    response.writeHead(reply.status, headOf(exchange, reply.headers));
    if (exchange.method === "HEAD") {
      body.destroy();
      response.end(() => delivered(exchange));
      return;
    }
    // A source that fails half-way cuts the connection: the client must not take a part for the whole.
    pipeline(body, response, (error) => {
      if (error) logger.debug("A streamed reply was cut short", { route: exchange.entry?.route.path, error });
      if (!error) delivered(exchange);
    });
  }

  function writeEvents(exchange: Exchange, reply: HttpReply, start: NonNullable<HttpReply["events"]>): void {
    const { response } = exchange;
    response.writeHead(reply.status, headOf(exchange, { ...eventHeaders, ...reply.headers }));
    // Without this a reader hears nothing, not even that it is connected, before the first event.
    response.flushHeaders();
    response.once("finish", () => delivered(exchange));
    if (exchange.method === "HEAD") {
      response.end();
      return;
    }
    const stream = streams.open(response);
    exchange.events = stream;
    try {
      start(stream);
    } catch (error) {
      logger.error("An event stream failed to start", { route: exchange.entry?.route.path, error });
      stream.end();
    }
  }

  /** Node says `finish` also of bytes that died with their socket; then the socket's end has told, or will tell, the exchange. */
  function delivered(exchange: Exchange): void {
    if (exchange.request.socket.destroyed) return;
    exchange.undelivered = undefined;
    connections.finish(exchange.connection, exchange);
  }

  function abandon(exchange: Exchange, body: HttpReply["body"]): void {
    if (body instanceof Readable) body.destroy();
    exchange.giveBack();
    connections.finish(exchange.connection, exchange);
  }

  function giveBack(undelivered: () => void): void {
    options.onUndelivered();
    try {
      undelivered();
    } catch (error) {
      // The socket's own event is no place to throw; what was granted comes back when its term ends.
      logger.error("An undelivered reply could not be given back", { error });
    }
  }

  /** The reply comes before the body was read. A client still waiting for 100-continue sends none, so its connection must end. */
  function leaveBody(exchange: Exchange): void {
    if (exchange.awaitsContinue) exchange.response.shouldKeepAlive = false;
    else discardRest(exchange.request, limits.discardBytes);
  }

  return { write };
}

/** Names and values in turn: the form that `writeHead` takes without building an object. */
function headOf(exchange: Exchange, headers: Readonly<Record<string, string>> | undefined): string[] {
  const head: string[] = [];
  for (const name in headers) head.push(name, headers[name] as string);
  if (exchange.allowedOrigin !== undefined) {
    head.push("access-control-allow-origin", exchange.allowedOrigin, "access-control-expose-headers", "*", "vary", "origin");
  }
  return head;
}

function lengthText(body: string | Uint8Array | undefined): string {
  if (body === undefined) return "0";
  return String(typeof body === "string" ? Buffer.byteLength(body) : body.byteLength);
}

function mayHaveLength(status: number): boolean {
  return status !== 204 && status !== 304 && status >= 200;
}
