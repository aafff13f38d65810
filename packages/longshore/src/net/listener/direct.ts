// How a connection begins: served by ourselves, without node:http, for as long as each request comes whole and plain and finds a route
// whose answer is whole too. That is what workers send, and it takes 11 to 22 % less CPU than through node:http. Anything else, be it
// a slow head, a body in pieces, pipelined or odd requests, streams or events, hands the connection over with its bytes, permanently.
//
// States of a connection: new (nothing received), busy (a request is under way), idle (between two requests), handed over. It is new for
// at most `headersMs` and idle for at most `keepAliveMs`. What arrives while it is busy waits for the answer and is then handed over.
// A client that does not read its answers is handed over too: node:http stops reading from it until it does. One whose first bytes are
// the preface of HTTP/2 is handed over to gRPC.

import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Connection, Connections } from "./connections.ts";
import { type DirectAnswers, DirectExchange, headerCheck, httpDate } from "./direct-exchange.ts";
import { readDirect } from "./direct-request.ts";
import type { Dispatch } from "./dispatch.ts";
import { pathOf } from "./exchange.ts";
import type { HttpLimits } from "./limits.ts";
import { prefaceIn } from "./preface.ts";
import type { Match, Router } from "./router.ts";

export interface DirectOptions {
  router: Router;
  dispatch: Dispatch;
  connections: Connections;
  limits: HttpLimits;
  /** For all bodies, and for what comes too early. */
  receiving: ByteBudget;
  /** Takes a socket that has no listeners of ours any more, and the bytes it has received. */
  handOver(socket: Socket, bytes: Buffer): void;
  /** The same for a client that speaks HTTP/2. */
  handOverHttp2(socket: Socket, bytes: Buffer): void;
  /** Nothing came in time on a new connection. */
  tooSlow(socket: Socket): void;
}

/** What may come while a request is under way before reading stops: the few packets of another request, not a flood. */
const earlyReadsMax = 4;
/** The same in bytes: the head of a request and a small body. */
const earlyBytesMax = 16_384;

/** Returns what serves a new socket. */
export function createDirect(options: DirectOptions): (socket: Socket) => void {
  const { keepAliveMs } = options.limits;
  const keepAliveText = `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.trunc(keepAliveMs / 1_000)}\r\n\r\n`;
  const answers: DirectAnswers = { date: httpDate(), keepAliveText, check: headerCheck() };
  return (socket) => {
    new DirectConnection(options, answers, options.connections.add(socket));
  };
}

class DirectConnection {
  private readonly options: DirectOptions;
  readonly answers: DirectAnswers;
  private readonly connection: Connection;
  private readonly socket: Socket;
  private isNew = true;
  /** The first bytes of a client that may speak HTTP/2, while that is open. */
  private preface: Buffer | undefined = undefined;
  /** What came while a request was under way, in this many reads. */
  private early: Buffer | undefined = undefined;
  private earlyReads = 0;
  /** Passed to exchanges. */
  readonly receiving: ByteBudget;

  constructor(options: DirectOptions, answers: DirectAnswers, connection: Connection) {
    this.options = options;
    this.receiving = options.receiving;
    this.answers = answers;
    this.connection = connection;
    this.socket = connection.socket;
    this.socket.on("data", this.onData);
    this.socket.on("end", this.onEnd);
    this.socket.on("error", this.onError);
    this.socket.on("timeout", this.onTimeout);
    this.socket.setTimeout(Math.min(options.limits.headersMs, options.limits.requestMs));
  }

  private readonly onData = (bytes: Buffer): void => {
    if (!this.connection.idle) return this.keep(bytes);
    if (this.isNew) {
      const begun = this.preface === undefined ? bytes : Buffer.concat([this.preface, bytes]);
      const speaks = prefaceIn(begun);
      this.preface = speaks === "begun" ? begun : undefined;
      if (speaks === "whole") return this.handOver(begun, this.options.handOverHttp2);
      if (speaks === "begun") return;
      return this.serve(begun);
    }
    this.serve(bytes);
  };

  private serve(bytes: Buffer): void {
    if (this.socket.writableNeedDrain) return this.handOver(bytes);
    const { router, dispatch, limits } = this.options;
    const request = readDirect(bytes, limits.headerBytes);
    if (request === undefined) return this.handOver(bytes);
    const path = pathOf(request.url);
    const match = router.find(request.method, path);
    if (!isPlain(match)) return this.handOver(bytes);
    dispatch(new DirectExchange(this.connection, request, path, match, this), match);
  }

  /** Passed to exchanges, as is `answers`. */
  readonly onFinished = (): void => {
    if (this.isNew) {
      this.isNew = false;
      this.socket.setTimeout(this.options.limits.keepAliveMs);
    }
    const { early } = this;
    if (early === undefined || !this.socket.writable) return;
    this.socket.removeListener("close", this.dropEarly);
    this.dropEarly();
    this.handOver(early);
  };

  /** Reading continues for a while, because only that shows that the client has disconnected. */
  private keep(bytes: Buffer): void {
    // Who waits for answers is never cut here.
    if (!this.receiving.take(bytes.length)) {
      this.socket.destroy();
      return;
    }
    if (this.early === undefined) this.socket.once("close", this.dropEarly);
    this.early = this.early === undefined ? bytes : Buffer.concat([this.early, bytes]);
    if (++this.earlyReads >= earlyReadsMax || this.early.length >= earlyBytesMax) this.socket.pause();
  }

  private readonly dropEarly = (): void => {
    this.receiving.give(this.early?.length ?? 0);
    this.early = undefined;
  };

  private handOver(bytes: Buffer, to = this.options.handOver): void {
    const { socket } = this;
    socket.removeListener("data", this.onData);
    socket.removeListener("end", this.onEnd);
    socket.removeListener("error", this.onError);
    socket.removeListener("timeout", this.onTimeout);
    socket.setTimeout(0);
    to(socket, bytes);
  }

  /** A client that ends its side has gone, as it has for node:http. */
  private readonly onEnd = (): void => {
    this.socket.end();
  };

  private readonly onError = (): void => {
    // The socket closes next, and Connections notifies the exchanges in progress.
  };

  private readonly onTimeout = (): void => {
    if (!this.connection.idle) return;
    if (this.isNew) this.options.tooSlow(this.socket);
    else this.socket.destroy();
  };
}

function isPlain({ entry }: Match): boolean {
  return entry === undefined || (entry.route.body !== "stream" && !entry.route.openEnded);
}
