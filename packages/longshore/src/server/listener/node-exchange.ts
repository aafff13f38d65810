// An exchange carried by node:http: whatever HTTP/1.1 allows, at Node's price.

import type { ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import { announcesBody, type BodyOutcome, type BodyRequest, boundedStream, discardRest, readText } from "./body.ts";
import type { Connection } from "./connections.ts";
import { Exchange } from "./exchange.ts";
import type { Match } from "./router.ts";

export class NodeExchange extends Exchange {
  readonly request: BodyRequest;
  readonly response: ServerResponse;
  /** How much of a body that nobody wants is thrown away before the socket is cut. */
  private readonly discardBytes: number;
  /** True while an announced body has not been read to its end. */
  private bodyLeft: boolean;
  /** Set when the client asked with `Expect: 100-continue` and has not been told to go on. */
  private awaitsContinue: boolean;
  private streamBytesMax = 0;
  private body: Readable | undefined = undefined;

  constructor(
    connection: Connection,
    request: BodyRequest,
    response: ServerResponse,
    path: string,
    match: Match,
    options: { awaitsContinue: boolean; discardBytes: number },
  ) {
    super(connection, request.method as string, request.url as string, request.headers, path, match);
    this.request = request;
    this.response = response;
    this.discardBytes = options.discardBytes;
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

  readText(bytesMax: number, keep: boolean, done: (outcome: BodyOutcome) => void): void {
    this.tellToContinue();
    readText(this.request, bytesMax, keep, (outcome) => {
      if (outcome !== "too-large") this.bodyLeft = false;
      done(outcome);
    });
  }

  openStream(bytesMax: number): void {
    this.tellToContinue();
    this.streamBytesMax = bytesMax;
  }

  beginAnswer(last: boolean): void {
    if (last) this.response.shouldKeepAlive = false;
    if (!this.bodyLeft || this.request.complete) return;
    // The answer comes before the body was read. A client still waiting for 100-continue sends none, so its connection must end.
    if (this.awaitsContinue) this.response.shouldKeepAlive = false;
    else discardRest(this.request, this.discardBytes);
  }

  /** String bodies leave in the same packet as their head. */
  sendWhole(status: number, head: readonly string[], body: string | Uint8Array | undefined, left?: () => void): void {
    this.response.writeHead(status, head as string[]);
    if (left === undefined) this.response.end(body);
    else this.response.end(body, left);
  }

  finished(): void {
    // Node itself turns to the next request.
  }

  private tellToContinue(): void {
    if (!this.awaitsContinue) return;
    this.awaitsContinue = false;
    this.response.writeContinue();
  }
}
