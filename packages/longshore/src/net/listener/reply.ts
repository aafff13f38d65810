// Writes a reply: a small body in one write with its headers, a large one in pieces, a stream through a pipe, and events until they end.
// When the client has disconnected, the route gets the reply back.

import type { ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import type { Logger } from "../../core/logger.ts";
import { LongBytes } from "../../core/long-bytes.ts";
import { PacedWrite, pieceBytes } from "../../core/paced-write.ts";
import type { HttpReply } from "../http/http.ts";
import type { Connections } from "./connections.ts";
import { exactLength, LengthMismatch } from "./exact-length.ts";
import type { Exchange } from "./exchange.ts";
import { noRoomForAnswer, problemError } from "./problems.ts";
import type { SendBudget } from "./send-budget.ts";
import { type EventStreams, eventHeaders } from "./sse.ts";

export interface ReplyWriterOptions {
  connections: Connections;
  streams: EventStreams;
  sending: SendBudget;
  logger: Logger;
  /** Called for each reply that is given back to its route: its client has disconnected, or there is no room for it. */
  onUndelivered: () => void;
}

export interface ReplyWriter {
  /**
   * Writes the reply. When the client has disconnected, gives the reply back to its route. Throws, without writing anything, for a reply
   * that HTTP cannot carry or that there is no room for, and for an open-ended reply on a route without `openEnded`.
   */
  write(exchange: Exchange, reply: HttpReply): void;
}

export function createReplyWriter(options: ReplyWriterOptions): ReplyWriter {
  const { connections, streams, sending, logger } = options;

  function write(exchange: Exchange, reply: HttpReply): void {
    const { body, undelivered } = reply;
    if (undelivered !== undefined) {
      exchange.undelivered = () => giveBack(undelivered);
      exchange.delivered = reply.delivered;
    }
    if (!exchange.connection.socket.writable) return abandon(exchange, body);
    if (reply.events === undefined && !(body instanceof Readable)) return writeWhole(exchange, reply, body);
    const response = openEndOf(exchange);
    if (response === undefined) return misfit(exchange, body);
    if (reply.events === undefined) holdStream(exchange, body as Readable);
    exchange.beginAnswer(connections.closing);
    if (reply.events !== undefined) writeEvents(exchange, response, reply, reply.events);
    else writeStream(exchange, response, reply, body as Readable);
  }

  /** The usual reply. */
  function writeWhole(exchange: Exchange, reply: HttpReply, body: string | Uint8Array | LongBytes | undefined): void {
    const head = headOf(exchange, reply.headers);
    const bytes = lengthOf(body);
    if (mayHaveLength(reply.status)) head.push("content-length", String(bytes));
    const paced = bytes > pieceBytes && exchange.method !== "HEAD";
    if (paced) hold(exchange, sending.take(bytes));
    const left = paced ? undefined : leaving(exchange, bytes);
    exchange.beginAnswer(connections.closing);
    if (paced) return writePaced(exchange, reply.status, head, body as string | Uint8Array | LongBytes);
    // Only a response to HEAD can have a long body here, and its body is left out.
    exchange.sendWhole({ status: reply.status, head, body: body instanceof LongBytes ? undefined : body, bytes }, left);
    // A reply that can be given back finishes later, when the system has taken its bytes. If the socket closes before, Connections notifies the
    // exchange.
    if (exchange.undelivered === undefined) finish(exchange);
    const { socket } = exchange.connection;
    if (socket.writableLength > 0) sending.left(socket);
  }

  /**
   * Returns the function to call when a small reply is sent; undefined for most replies. Through node:http, a reply may wait behind earlier
   * responses, so its bytes count against the budget until it is sent.
   */
  function leaving(exchange: Exchange, length: number): (() => void) | undefined {
    const queued = exchange.response === undefined ? nothing : sending.queue(exchange.connection.socket, length);
    if (queued === undefined) return noRoom(exchange);
    if (exchange.undelivered === undefined) return queued === nothing ? undefined : queued;
    return () => {
      queued();
      delivered(exchange);
    };
  }

  /** Writes a large reply in pieces, as its reader takes them. */
  function writePaced(exchange: Exchange, status: number, head: readonly string[], body: string | Uint8Array | LongBytes): void {
    const { socket } = exchange.connection;
    const ended = () => {
      sending.unwatch(writing);
      exchange.endPieces(() => delivered(exchange));
    };
    const writing = new PacedWrite(exchange.beginPieces(status, head), body, ended, () => socket.destroy());
    const { release } = exchange;
    exchange.release = () => {
      sending.unwatch(writing);
      writing.stop();
      release?.();
    };
    sending.watch(writing);
    writing.start();
  }

  function hold(exchange: Exchange, release: (() => void) | undefined): void {
    if (release === undefined) noRoom(exchange);
    exchange.release = release;
  }

  /** Gives up the reply; its route takes back what the reply granted. */
  function noRoom(exchange: Exchange): never {
    exchange.giveBack();
    throw problemError(noRoomForAnswer(sending.bytesMax));
  }

  function holdStream(exchange: Exchange, body: Readable): void {
    const release = sending.takeStream(exchange.connection.socket);
    if (release === undefined) body.destroy();
    hold(exchange, release);
  }

  function writeStream(exchange: Exchange, response: ServerResponse, reply: HttpReply, body: Readable): void {
    response.writeHead(reply.status, headOf(exchange, reply.headers));
    if (exchange.method === "HEAD") {
      body.destroy();
      response.end(() => delivered(exchange));
      return;
    }
    // A source that fails in the middle closes the connection: the client must not take a part for the whole.
    const sent = (error: Error | null | undefined) => {
      if (!error) return delivered(exchange);
      // Most other errors are those of clients that disconnect.
      const level = error instanceof LengthMismatch ? "error" : "debug";
      logger[level]("A streamed reply was cut short", { route: exchange.entry?.route.path, path: exchange.path, error });
    };
    const announced = reply.headers?.["content-length"];
    if (announced === undefined) pipeline(body, response, sent);
    else pipeline(body, exactLength(Number(announced)), response, sent);
  }

  function writeEvents(exchange: Exchange, response: ServerResponse, reply: HttpReply, start: NonNullable<HttpReply["events"]>): void {
    response.writeHead(reply.status, headOf(exchange, { ...eventHeaders, ...reply.headers }));
    // Without this, a reader would receive nothing before the first event, not even the headers.
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

  /** Node emits `finish` also for bytes that were lost with their socket; then the end of the socket notifies the exchange. */
  function delivered(exchange: Exchange): void {
    if (exchange.connection.socket.destroyed) return;
    exchange.undelivered = undefined;
    exchange.delivered?.();
    finish(exchange);
  }

  function abandon(exchange: Exchange, body: HttpReply["body"]): void {
    if (body instanceof Readable) body.destroy();
    exchange.giveBack();
    finish(exchange);
  }

  function finish(exchange: Exchange): void {
    exchange.letGo();
    connections.finish(exchange.connection, exchange);
    exchange.finished();
  }

  function giveBack(undelivered: () => void): void {
    options.onUndelivered();
    try {
      undelivered();
    } catch (error) {
      // An event handler of the socket must not throw; the granted lease expires by itself.
      logger.error("An undelivered reply could not be given back", { error });
    }
  }

  return { write };
}

const nothing = (): void => {};

/**
 * Only a route with `openEnded` may return a stream or events, also where the connection could carry them. So a missing `openEnded` fails in the
 * first test of the route, and not only for some clients.
 */
function openEndOf(exchange: Exchange): ServerResponse | undefined {
  return exchange.entry?.route.openEnded ? exchange.response : undefined;
}

function misfit(exchange: Exchange, body: HttpReply["body"]): never {
  if (body instanceof Readable) body.destroy();
  throw new TypeError(`Route ${exchange.method} ${exchange.entry?.route.path} answers with a stream or events, but is not openEnded.`);
}

/**
 * Names and values alternate: the form that `writeHead` accepts without building an object. Stored content is returned with the type that
 * its author gave it, and a browser must not guess another type. No cache may keep a reply, unless its route permits it: not every cache knows that
 * a request with `X-Authorization` has a token.
 */
function headOf(exchange: Exchange, headers: Readonly<Record<string, string>> | undefined): string[] {
  const head: string[] = ["x-content-type-options", "nosniff"];
  if (headers?.["cache-control"] === undefined) head.push("cache-control", "no-store");
  for (const name in headers) head.push(name, headers[name] as string);
  if (exchange.allowedOrigin !== undefined) {
    head.push("access-control-allow-origin", exchange.allowedOrigin, "access-control-expose-headers", "*", "vary", "origin");
  }
  return head;
}

function lengthOf(body: string | Uint8Array | LongBytes | undefined): number {
  if (body === undefined) return 0;
  return typeof body === "string" ? Buffer.byteLength(body) : body.byteLength;
}

function mayHaveLength(status: number): boolean {
  return status !== 204 && status !== 304 && status >= 200;
}
