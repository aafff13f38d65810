// One request and its answer: the HttpRequest for the route, with costly fields made on first use, and the state that the listener needs
// until the answer has left. Two kinds carry it: direct-exchange.ts and node-exchange.ts.

import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { Readable, type Writable } from "node:stream";
import { type Caller, stranger } from "../../core/actions.ts";
import type { ByteBudget } from "../../core/byte-budget.ts";
import type { Parsed } from "../../core/json/json-slices.ts";
import type { HttpRequest, RouteGroup } from "../http/http.ts";
import type { BodyOutcome } from "./body.ts";
import type { BodyLimits } from "./body-reading.ts";
import type { Connection } from "./connections.ts";
import type { Match, RouteEntry } from "./router.ts";
import type { EventStream } from "./sse.ts";

/** An answer that is written at once. */
export interface WholeAnswer {
  readonly status: number;
  /** Names and values in turn. */
  readonly head: readonly string[];
  readonly body: string | Uint8Array | undefined;
  /** The length of the body. */
  readonly bytes: number;
}

export abstract class Exchange implements HttpRequest {
  readonly connection: Connection;
  readonly method: string;
  readonly url: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly entry: RouteEntry | undefined;
  readonly group: RouteGroup;
  params: Readonly<Record<string, string>> = noParams;
  text = "";
  parsed: Parsed | undefined = undefined;
  caller: Caller = stranger;
  place: string | undefined = undefined;
  slotOf: string | undefined = undefined;
  /** Called when the handler turns out to wait for something to happen. */
  waits: (() => void) | undefined = undefined;
  /** A foreign web origin that may read the answer. */
  allowedOrigin: string | undefined = undefined;
  /** Called when the client disconnects before the answer has left. */
  undelivered: (() => void) | undefined = undefined;
  events: EventStream | undefined = undefined;
  /** Gives back what the answer holds until it has left. */
  release: (() => void) | undefined = undefined;
  private lost = false;
  /** What its body in memory is counted against, and its bytes there. */
  private bodyBudget: ByteBudget | undefined = undefined;
  private bodyBytes = 0;
  private controller: AbortController | undefined = undefined;
  private parsedQuery: URLSearchParams | undefined = undefined;

  constructor(connection: Connection, method: string, url: string, headers: IncomingHttpHeaders, path: string, match: Match) {
    this.connection = connection;
    this.method = method;
    this.url = url;
    this.path = path;
    this.headers = headers;
    this.entry = match.entry;
    this.group = match.group;
  }

  /** True once a piece of the answer has been written: the status cannot change then. */
  abstract get begun(): boolean;

  /** Only where an answer may stay open: a stream, or events. */
  abstract get response(): ServerResponse | undefined;

  /** Reads the whole body and calls `done` once; never when the client disconnects half-way. */
  abstract readText(limits: BodyLimits, done: (outcome: BodyOutcome) => void): void;

  /** Lets the route read the body by itself, as `stream`. */
  abstract openStream(bytesMax: number): void;

  /** Must be called before an answer is written. With `last` the connection ends after it. */
  abstract beginAnswer(last: boolean): void;

  /** Writes head and body. `left` is called when the system has taken the bytes, or they are lost. */
  abstract sendWhole(answer: WholeAnswer, left?: () => void): void;

  /** Writes the head of an answer whose body comes in pieces, and returns where to write these. */
  abstract beginPieces(status: number, head: readonly string[]): Writable;

  /** The last piece has been written. */
  abstract endPieces(left: () => void): void;

  /** The answer has left, or never will: the connection may continue. */
  abstract finished(): void;

  get query(): URLSearchParams {
    this.parsedQuery ??= new URLSearchParams(this.url.slice(this.path.length + 1));
    return this.parsedQuery;
  }

  get stream(): Readable {
    return Readable.from([]);
  }

  streamText(_bytesMax: number): Promise<string> {
    return Promise.resolve("");
  }

  /** The body is in memory, and so many bytes of `budget` are taken for it. */
  protected holdBody(budget: ByteBudget, bytes: number): void {
    this.bodyBudget = budget;
    this.bodyBytes = bytes;
  }

  /** Lets go of the body: the answer is made, or waits for something to happen, and may do so for long. Again is harmless. */
  dropBody(): void {
    const { bodyBudget } = this;
    if (bodyBudget === undefined) return;
    this.bodyBudget = undefined;
    this.text = "";
    this.parsed = undefined;
    bodyBudget.give(this.bodyBytes);
  }

  /** The route that reads it waits for something to happen, and has read the body before. */
  get gone(): AbortSignal {
    this.waits?.();
    this.dropBody();
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.lost) this.controller.abort();
    }
    return this.controller.signal;
  }

  /** The socket has closed while this exchange was under way. */
  clientGone(): void {
    this.lost = true;
    this.controller?.abort();
    this.letGo();
    this.events?.lost();
    this.giveBack();
  }

  /** The answer holds nothing any more: it has left, or never will. Again is harmless. */
  letGo(): void {
    const { release } = this;
    this.release = undefined;
    release?.();
  }

  /** Notifies the route, once, that its answer did not arrive. */
  giveBack(): void {
    const undelivered = this.undelivered;
    this.undelivered = undefined;
    undelivered?.();
  }
}

/** The path before the query. */
export function pathOf(url: string): string {
  const queryAt = url.indexOf("?");
  return queryAt < 0 ? url : url.slice(0, queryAt);
}

const noParams: Readonly<Record<string, string>> = Object.freeze({});
