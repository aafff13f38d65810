// Writes a reply: head and body in one write where the body is at hand and small, in pieces where it is large, a pipe where it is a stream, an open end where it is events.
// A reply whose client has gone is given back to its route instead.

import type { ServerResponse } from "node:http";
import { pipeline, Readable } from "node:stream";
import type { Logger } from "../../core/logger.ts";
import { LongBytes } from "../../core/long-bytes.ts";
import { PacedWrite, pieceBytes } from "../../core/paced-write.ts";
import type { HttpReply } from "../http/http.ts";
import type { Connections } from "./connections.ts";
import type { Exchange } from "./exchange.ts";
import { noRoomForAnswer, problemError } from "./problems.ts";
import type { SendBudget } from "./send-budget.ts";
import { type EventStreams, eventHeaders } from "./sse.ts";

export interface ReplyWriterOptions {
  connections: Connections;
  streams: EventStreams;
  sending: SendBudget;
  logger: Logger;
  /** Called for each reply whose client had gone. */
  onUndelivered: () => void;
}

export interface ReplyWriter {
  /** Writes the reply, whatever has become of the client. Throws only for a reply that HTTP cannot carry or that there is no room for, with nothing written. */
  write(exchange: Exchange, reply: HttpReply): void;
}

export function createReplyWriter(options: ReplyWriterOptions): ReplyWriter {
  const { connections, streams, sending, logger } = options;

  function write(exchange: Exchange, reply: HttpReply): void {
    const { body, undelivered } = reply;
    if (undelivered !== undefined) exchange.undelivered = () => giveBack(undelivered);
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
    // Only the answer to HEAD gets here with a long body, which it leaves out.
    exchange.sendWhole({ status: reply.status, head, body: body instanceof LongBytes ? undefined : body, bytes }, left);
    // Until the system has taken the bytes the socket may still close; then Connections notifies the exchange.
    if (exchange.undelivered === undefined) finish(exchange);
    const { socket } = exchange.connection;
    if (socket.writableLength > 0) sending.left(socket);
  }

  /** What is to be done when a small reply has left: nothing for most. Carried by node:http it may wait for the answers to earlier requests. */
  function leaving(exchange: Exchange, length: number): (() => void) | undefined {
    const queued = exchange.response === undefined ? nothing : sending.queue(exchange.connection.socket, length);
    if (queued === undefined) return noRoom(exchange);
    if (exchange.undelivered === undefined) return queued === nothing ? undefined : queued;
    return () => {
      queued();
      delivered(exchange);
    };
  }

  /** A large reply, piece by piece as its reader takes it. */
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

  /** The reply is given up, and its route gets back what it had granted. */
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
    // A source that fails half-way cuts the connection: the client must not take a part for the whole.
    pipeline(body, response, (error) => {
      if (error) logger.debug("A streamed reply was cut short", { route: exchange.entry?.route.path, error });
      if (!error) delivered(exchange);
    });
  }

  function writeEvents(exchange: Exchange, response: ServerResponse, reply: HttpReply, start: NonNullable<HttpReply["events"]>): void {
    response.writeHead(reply.status, headOf(exchange, { ...eventHeaders, ...reply.headers }));
    // Without this a reader gets nothing, not even that it is connected, before the first event.
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
      // The socket's own event is no place to throw; what was granted comes back when its term ends.
      logger.error("An undelivered reply could not be given back", { error });
    }
  }

  return { write };
}

const nothing = (): void => {};

/** The rule holds for every connection, so that a route without the mark fails in its first test and not for some clients only. */
function openEndOf(exchange: Exchange): ServerResponse | undefined {
  return exchange.entry?.route.openEnded ? exchange.response : undefined;
}

function misfit(exchange: Exchange, body: HttpReply["body"]): never {
  if (body instanceof Readable) body.destroy();
  throw new TypeError(`Route ${exchange.method} ${exchange.entry?.route.path} answers with a stream or events, but is not openEnded.`);
}

/**
 * Names and values in turn: the form that `writeHead` takes without building an object. What workers and callers stored comes back under the
 * type that they gave it, and a browser must not find another type in it.
 */
function headOf(exchange: Exchange, headers: Readonly<Record<string, string>> | undefined): string[] {
  const head: string[] = ["x-content-type-options", "nosniff"];
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
