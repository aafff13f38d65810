// Writes a reply: head and body in one write where the body is at hand, a pipe where it is a stream, an open end where it is events.
// A reply whose client has gone is given back to its route instead.

import type { ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import type { HttpReply } from "../../http.ts";
import type { Logger } from "../logger.ts";
import type { Connections } from "./connections.ts";
import type { Exchange } from "./exchange.ts";
import { type EventStreams, eventHeaders } from "./sse.ts";

export interface ReplyWriterOptions {
  connections: Connections;
  streams: EventStreams;
  logger: Logger;
  /** Called for each reply whose client had gone. */
  onUndelivered: () => void;
}

export interface ReplyWriter {
  /** Writes the reply, whatever has become of the client. Throws only for a reply that HTTP cannot carry, with nothing written. */
  write(exchange: Exchange, reply: HttpReply): void;
}

export function createReplyWriter(options: ReplyWriterOptions): ReplyWriter {
  const { connections, streams, logger } = options;

  function write(exchange: Exchange, reply: HttpReply): void {
    const { body, undelivered } = reply;
    if (undelivered !== undefined) exchange.undelivered = () => giveBack(undelivered);
    if (!exchange.connection.socket.writable) return abandon(exchange, body);
    if (reply.events === undefined && !(body instanceof Readable)) return writeWhole(exchange, reply, body);
    const response = openEndOf(exchange);
    if (response === undefined) return misfit(exchange, body);
    exchange.beginAnswer(connections.closing);
    if (reply.events !== undefined) writeEvents(exchange, response, reply, reply.events);
    else writeStream(exchange, response, reply, body as Readable);
  }

  /** The usual reply. */
  function writeWhole(exchange: Exchange, reply: HttpReply, body: string | Uint8Array | undefined): void {
    const head = headOf(exchange, reply.headers);
    if (mayHaveLength(reply.status)) head.push("content-length", lengthText(body));
    exchange.beginAnswer(connections.closing);
    if (exchange.undelivered === undefined) {
      exchange.sendWhole(reply.status, head, body);
      finish(exchange);
    } else {
      // Until the system has taken the bytes the socket may still close; then Connections tells the exchange.
      exchange.sendWhole(reply.status, head, body, () => delivered(exchange));
    }
  }

  function writeStream(exchange: Exchange, response: ServerResponse, reply: HttpReply, body: Readable): void {
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

  function writeEvents(exchange: Exchange, response: ServerResponse, reply: HttpReply, start: NonNullable<HttpReply["events"]>): void {
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
    if (exchange.connection.socket.destroyed) return;
    exchange.undelivered = undefined;
    finish(exchange);
  }

  function abandon(exchange: Exchange, body: HttpReply["body"]): void {
    if (body instanceof Readable) body.destroy();
    exchange.giveBack();
    finish(exchange);
  }

  function finish(exchange: Exchange): void {
    connections.finish(exchange.connection, exchange);
    exchange.finished();
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

  return { write };
}

/** The rule holds for every connection, so that a route which forgot to say so fails in its first test and not for some clients only. */
function openEndOf(exchange: Exchange): ServerResponse | undefined {
  return exchange.entry?.route.openEnded ? exchange.response : undefined;
}

function misfit(exchange: Exchange, body: HttpReply["body"]): never {
  if (body instanceof Readable) body.destroy();
  throw new TypeError(`Route ${exchange.method} ${exchange.entry?.route.path} answers with a stream or events, but is not openEnded.`);
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
