// One request and its answer: what a route sees as HttpRequest, with the costly parts made on first use, and what the listener needs
// to know of it until the answer has left.

import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import type { HttpRequest, RouteGroup } from "../http.ts";
import { type BodyRequest, boundedStream } from "./body.ts";
import type { Connection } from "./connections.ts";
import type { RouteEntry } from "./router.ts";
import type { EventStream } from "./sse.ts";

export class Exchange implements HttpRequest {
  readonly request: BodyRequest;
  readonly response: ServerResponse;
  readonly connection: Connection;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly entry: RouteEntry | undefined;
  readonly group: RouteGroup;
  params: Readonly<Record<string, string>> = noParams;
  text = "";
  principal: string | undefined = undefined;
  /** A foreign web origin that may read the answer. */
  allowedOrigin: string | undefined = undefined;
  /** True while an announced body has not been read to its end. */
  bodyLeft = false;
  /** Set when the client asked with `Expect: 100-continue` and has not been told to go on. */
  awaitsContinue = false;
  /** What to do when the client goes before the answer has left. */
  undelivered: (() => void) | undefined = undefined;
  events: EventStream | undefined = undefined;
  /** How many bytes a streamed body may have. */
  streamBytesMax = 0;
  private lost = false;
  private readonly queryAt: number;
  private controller: AbortController | undefined = undefined;
  private parsedQuery: URLSearchParams | undefined = undefined;
  private body: Readable | undefined = undefined;

  constructor(
    request: BodyRequest,
    response: ServerResponse,
    connection: Connection,
    path: string,
    queryAt: number,
    entry: RouteEntry | undefined,
    group: RouteGroup,
  ) {
    this.request = request;
    this.response = response;
    this.connection = connection;
    this.method = request.method as string;
    this.headers = request.headers;
    this.path = path;
    this.queryAt = queryAt;
    this.entry = entry;
    this.group = group;
  }

  get query(): URLSearchParams {
    this.parsedQuery ??= new URLSearchParams(this.queryAt < 0 ? "" : this.request.url?.slice(this.queryAt + 1));
    return this.parsedQuery;
  }

  get stream(): Readable {
    if (this.body === undefined) {
      const wanted = this.entry?.route.body === "stream";
      this.body = wanted ? boundedStream(this.request, this.streamBytesMax) : Readable.from([]);
    }
    return this.body;
  }

  get gone(): AbortSignal {
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
    this.events?.lost();
    this.giveBack();
  }

  /** Tells the route, once, that its answer did not arrive. */
  giveBack(): void {
    const undelivered = this.undelivered;
    this.undelivered = undefined;
    undelivered?.();
  }
}

const noParams: Readonly<Record<string, string>> = Object.freeze({});
