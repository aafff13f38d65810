// One request and its response: the HttpRequest for the route, and the state that the listener needs until the response is sent. Costly
// fields are created on first use. There are two kinds: direct-exchange.ts and node-exchange.ts.

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

/** A response that is written at once. */
export interface WholeAnswer {
  readonly status: number;
  /** Names and values alternate. */
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
  id: string | undefined = undefined;
  place: string | undefined = undefined;
  slotOf: string | undefined = undefined;
  /** When its headers were complete, in milliseconds of a monotonic clock; and whether the handler has waited for an event since then. */
  readonly begunAt: number = performance.now();
  hasWaited = false;
  /** Called when the handler waits for an event. */
  waits: (() => void) | undefined = undefined;
  /** A foreign web origin that may read the response. */
  allowedOrigin: string | undefined = undefined;
  /** Called when the client disconnects before the response is sent. */
  undelivered: (() => void) | undefined = undefined;
  /** Called when the system has taken the response. Only for responses that can be given back. */
  delivered: (() => void) | undefined = undefined;
  events: EventStream | undefined = undefined;
  /** Releases what the response holds until it is sent. */
  release: (() => void) | undefined = undefined;
  private lost = false;
  /** The budget of its body in memory, and the bytes that the body uses. */
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

  /** True once a part of the response was written: the status cannot change then. */
  abstract get begun(): boolean;

  /** Set only when a response may stay open: a stream, or events. */
  abstract get response(): ServerResponse | undefined;

  /** Reads the whole body and calls `done` once; never when the client disconnects before its end. */
  abstract readText(limits: BodyLimits, done: (outcome: BodyOutcome) => void): void;

  /** Lets the route read the body itself, as `stream`. */
  abstract openStream(bytesMax: number): void;

  /** Must be called before a response is written. With `last`, the connection ends after the response. */
  abstract beginAnswer(last: boolean): void;

  /** Writes headers and body. `left` is called when the system has taken the bytes, or they are lost. */
  abstract sendWhole(answer: WholeAnswer, left?: () => void): void;

  /** Writes the headers of a response whose body follows in pieces, and returns the stream to write them to. */
  abstract beginPieces(status: number, head: readonly string[]): Writable;

  /** Ends the response after its last piece. */
  abstract endPieces(left: () => void): void;

  /** The response is sent, or cannot be sent any more: the connection may continue. */
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

  /** The body is in memory, and this many bytes of `budget` are reserved for it. */
  protected holdBody(budget: ByteBudget, bytes: number): void {
    this.bodyBudget = budget;
    this.bodyBytes = bytes;
  }

  /** Releases the body when the response is built, or when it waits for an event. Calling it again has no effect. */
  dropBody(): void {
    const { bodyBudget } = this;
    if (bodyBudget === undefined) return;
    this.bodyBudget = undefined;
    this.text = "";
    this.parsed = undefined;
    bodyBudget.give(this.bodyBytes);
  }

  /** A route that reads this signal waits for an event, and has read the body before. */
  get gone(): AbortSignal {
    this.hasWaited = true;
    this.waits?.();
    this.dropBody();
    if (this.controller === undefined) {
      this.controller = new AbortController();
      if (this.lost) this.controller.abort();
    }
    return this.controller.signal;
  }

  /** The socket has closed during this exchange. */
  clientGone(): void {
    this.lost = true;
    this.controller?.abort();
    this.letGo();
    this.events?.lost();
    this.giveBack();
  }

  /** Releases the memory of the response, which is sent or cannot be sent any more. Calling it again has no effect. */
  letGo(): void {
    const { release } = this;
    this.release = undefined;
    release?.();
  }

  /** Notifies the route, once, that its response was not delivered. */
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
