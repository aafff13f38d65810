// Serves a new connection without node:http. It does this as long as each request arrives in one piece and in its usual form, and its route
// returns a complete response. Workers send such requests, and this takes 11 to 22 % less CPU than node:http. Everything else (slow
// headers, a body in pieces, pipelined or unusual requests, streams or events) hands the connection and its bytes over to node:http,
// permanently.
//
// States of a connection: new (nothing received), busy (a request is in progress), idle (between two requests), handed over. It is new for
// at most `headersMs` and idle for at most `keepAliveMs`. Data that arrives while it is busy waits for the response and is then handed
// over. A client that does not read its responses is handed over too: node:http stops reading from it until it does. A connection that
// starts with the HTTP/2 preface is handed over to gRPC.

import type { Socket } from "node:net";
import type { ByteBudget } from "../../core/byte-budget.ts";
import { type LoopTurns, requestUnits, type Share } from "../../core/slices/loop-turns.ts";
import type { Connection, Connections } from "./connections.ts";
import { type DirectAnswers, DirectExchange, headerCheck, httpDate } from "./direct-exchange.ts";
import { readDirect } from "./direct-request.ts";
import type { Dispatch } from "./dispatch.ts";
import { pathOf } from "./exchange.ts";
import type { HttpLimits } from "./limits.ts";
import { prefaceIn } from "./preface.ts";
import type { Match, Router } from "./router.ts";
import type { Upgrades } from "./upgrade.ts";

export interface DirectOptions {
  router: Router;
  dispatch: Dispatch;
  connections: Connections;
  limits: HttpLimits;
  /** The budget for all bodies, and for data that arrives too early. */
  receiving: ByteBudget;
  /** Limits the work of connections in one turn of the event loop. */
  turns: LoopTurns;
  /** Takes the requests for the path of an upgrade, if there is one. */
  upgrades?: Upgrades;
  /** Receives a socket without listeners of ours, and the bytes it has received. */
  handOver(socket: Socket, bytes: Buffer): void;
  /** The same for an HTTP/2 client. */
  handOverHttp2(socket: Socket, bytes: Buffer): void;
  /** Called when nothing arrived in time on a new connection. */
  tooSlow(socket: Socket): void;
}

/** How many reads are accepted while a request is in progress, before reading stops: a few packets of another request. */
const earlyReadsMax = 4;
/** The same limit in bytes: the headers of a request and a small body. */
const earlyBytesMax = 16_384;

/** Returns the function that serves a new socket. */
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
  /** The first bytes of a client that may use HTTP/2, until that is known. */
  private preface: Buffer | undefined = undefined;
  /** Data that arrived while a request was in progress, and the number of reads. */
  private early: Buffer | undefined = undefined;
  private earlyReads = 0;
  /** The share of a client that has shown no valid token, and whether it waits for its turn. */
  private share: Share | undefined = undefined;
  private waits = false;
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
    if (this.waits || !this.connection.idle) return this.keep(bytes);
    if (!this.connection.known && this.mustWait()) return this.keep(bytes);
    this.take(bytes);
  };

  /**
   * Thousands of unknown clients may send something in the same turn of the event loop. Requests of known clients are not counted: each
   * sends one and waits for the response.
   */
  private mustWait(): boolean {
    this.share ??= this.options.turns.share(this.onTurn, () => this.connection.known);
    this.waits = this.share.used;
    if (this.waits) this.share.wait();
    else this.share.spend(requestUnits);
    return this.waits;
  }

  private readonly onTurn = (): void => {
    this.waits = false;
    this.share?.spend(requestUnits);
    const bytes = this.takeEarly();
    if (bytes === undefined) return;
    this.earlyReads = 0;
    this.socket.resume();
    this.take(bytes);
  };

  private take(bytes: Buffer): void {
    if (this.isNew) {
      const begun = this.preface === undefined ? bytes : Buffer.concat([this.preface, bytes]);
      const speaks = prefaceIn(begun);
      this.preface = speaks === "begun" ? begun : undefined;
      if (speaks === "whole") return this.handOver(begun, this.options.handOverHttp2);
      if (speaks === "begun") return;
      return this.serve(begun);
    }
    this.serve(bytes);
  }

  private serve(bytes: Buffer): void {
    if (this.socket.writableNeedDrain) return this.handOver(bytes);
    const { router, dispatch, limits, upgrades } = this.options;
    if (upgrades?.isFor(bytes)) return this.handOver(bytes, upgrades.take);
    const request = readDirect(bytes, limits.headerBytes);
    if (request === undefined) return this.handOver(bytes);
    const path = pathOf(request.url);
    const match = router.find(request.method, path);
    if (!isPlain(match)) return this.handOver(bytes);
    dispatch(new DirectExchange(this.connection, request, path, match, this), match);
  }

  /** Passed to exchanges, like `answers`. */
  readonly onFinished = (): void => {
    if (this.isNew) {
      this.isNew = false;
      this.socket.setTimeout(this.options.limits.keepAliveMs);
    }
    const early = this.takeEarly();
    if (early !== undefined) this.handOver(early);
  };

  /** The data that was kept; undefined when there is none, or nothing can be answered any more. */
  private takeEarly(): Buffer | undefined {
    const { early } = this;
    if (early === undefined || !this.socket.writable) return undefined;
    this.socket.removeListener("close", this.dropEarly);
    this.dropEarly();
    return early;
  }

  /** Keeps early data. Reading continues for a while, because only that shows whether the client has disconnected. */
  private keep(bytes: Buffer): void {
    // A known client that waits for its responses never gets here.
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

  /** A client that ends its side has disconnected, as for node:http. */
  private readonly onEnd = (): void => {
    this.socket.end();
  };

  private readonly onError = (): void => {
    // The socket closes next, and Connections notifies the exchanges in progress.
  };

  private readonly onTimeout = (): void => {
    if (this.waits || !this.connection.idle) return;
    if (this.isNew) this.options.tooSlow(this.socket);
    else this.socket.destroy();
  };
}

function isPlain({ entry }: Match): boolean {
  return entry === undefined || (entry.route.body !== "stream" && !entry.route.openEnded);
}
