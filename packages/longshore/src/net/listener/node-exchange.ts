// An exchange through node:http: supports all of HTTP/1.1, at Node's cost.

import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Moving, Stalls } from "../../core/stalls.ts";
import { announcesBody, type BodyOutcome, type BodyRequest, boundedStream, discardRest } from "./body.ts";
import { type BodyLimits, BodyReading, collectText } from "./body-reading.ts";
import type { Connection } from "./connections.ts";
import { Exchange, type WholeAnswer } from "./exchange.ts";
import type { Match } from "./router.ts";

export interface NodeExchangeOptions {
  readonly awaitsContinue: boolean;
  /** How much of an unwanted body is discarded before the socket is closed. */
  readonly discardBytes: number;
  /** Ends requests that make no progress. */
  readonly stalls: Stalls;
  /** The limit of JSON values of a streamed body that is read as text. */
  readonly valuesMax: number;
  /** The budget of all bodies that are being received. */
  readonly budget: ByteBudget;
}

export class NodeExchange extends Exchange {
  readonly request: BodyRequest;
  readonly response: ServerResponse;
  private readonly options: NodeExchangeOptions;
  private reading: BodyReading | undefined = undefined;
  /** True while an announced body has not been read to its end. */
  private bodyLeft: boolean;
  /** True when the client sent `Expect: 100-continue` and has not received 100 Continue. */
  private awaitsContinue: boolean;
  private streamBytesMax = 0;
  private body: Readable | undefined = undefined;

  constructor(
    connection: Connection,
    request: BodyRequest,
    response: ServerResponse,
    path: string,
    match: Match,
    options: NodeExchangeOptions,
  ) {
    super(connection, request.method as string, request.url as string, request.headers, path, match);
    this.request = request;
    this.response = response;
    this.options = options;
    this.awaitsContinue = options.awaitsContinue;
    this.bodyLeft = announcesBody(request.headers);
  }

  get begun(): boolean {
    return this.response.headersSent;
  }

  override get stream(): Readable {
    this.body ??= this.entry?.route.body === "stream" ? boundedStream(this.request, this.streamBytesMax) : super.stream;
    return this.body;
  }

  readText(limits: BodyLimits, done: (outcome: BodyOutcome) => void): void {
    this.tellToContinue();
    const reading = new BodyReading(this.request, limits, this.options.budget, (outcome, held) => {
      this.options.stalls.unwatch(reading);
      this.holdBody(this.options.budget, held);
      this.bodyLeft = !this.request.complete;
      done(outcome);
    });
    this.reading = reading;
    this.options.stalls.watch(reading);
  }

  override clientGone(): void {
    if (this.reading !== undefined) {
      this.options.stalls.unwatch(this.reading);
      this.reading.stop();
    }
    super.clientGone();
  }

  openStream(bytesMax: number): void {
    this.tellToContinue();
    this.streamBytesMax = bytesMax;
    this.watchSender();
  }

  override streamText(bytesMax: number): Promise<string> {
    return collectText(this.stream, { bytesMax, valuesMax: this.options.valuesMax }, this.options.budget);
  }

  beginAnswer(last: boolean): void {
    if (last) this.response.shouldKeepAlive = false;
    if (!this.bodyLeft || this.request.complete) return;
    // The response comes before the body was read. A client that still waits for 100 Continue sends no body, so its connection must end.
    if (this.awaitsContinue) this.response.shouldKeepAlive = false;
    else {
      this.watchSender();
      discardRest(this.request, this.options.discardBytes);
    }
  }

  /** String bodies are sent in the same packet as their headers. */
  sendWhole({ status, head, body }: WholeAnswer, left?: () => void): void {
    this.response.writeHead(status, head as string[]);
    if (left === undefined) this.response.end(body);
    else this.response.end(body, left);
  }

  beginPieces(status: number, head: readonly string[]): ServerResponse {
    return this.response.writeHead(status, head as string[]);
  }

  endPieces(left: () => void): void {
    this.response.end(left);
  }

  finished(): void {
    // Node continues with the next request by itself.
  }

  /** A body that is not read into memory must make progress too; a client that stops sending is disconnected. */
  private watchSender(): void {
    const { request } = this;
    const { stalls } = this.options;
    const sender: Moving = {
      progress: () => (request.readableFlowing === false || request.readableLength > 0 ? Number.NaN : request.socket.bytesRead),
      stalled: () => void request.socket.destroy(),
    };
    stalls.watch(sender);
    request.once("close", () => stalls.unwatch(sender));
    request.once("end", () => stalls.unwatch(sender));
  }

  private tellToContinue(): void {
    if (!this.awaitsContinue) return;
    this.awaitsContinue = false;
    this.response.writeContinue();
  }
}
