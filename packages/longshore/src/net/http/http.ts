// The parts of a protocol's server half: routes, requests and replies. A protocol lists its routes as data, so that one access check guards
// all of them and a test can read the table. net/listener has the sockets.

import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Action, Caller } from "../../core/actions.ts";
import type { Parsed } from "../../core/json/json-slices.ts";
import type { LongBytes } from "../../core/long-bytes.ts";

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  /** Percent-decoded path parameters, by name. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** The whole body as text; empty for routes whose `body` is not `text`. */
  readonly text: string;
  /**
   * The value of a large JSON body, which was parsed in slices before the route is called; undefined for every other body. See `jsonOf`.
   */
  readonly parsed: Parsed | undefined;
  /** The body as a stream, only for routes whose `body` is `stream`. */
  readonly stream: Readable;
  /** Reads that stream as text, with the limits of text bodies. */
  streamText(bytesMax: number): Promise<string>;
  /** The caller, and what it may do. */
  readonly caller: Caller;
  /**
   * In a cluster: the id of the request. When the request is performed again because an owner of the data was lost, it has the same id. Set
   * before the route is called.
   */
  id?: string | undefined;
  /**
   * Aborts when the client disconnects before the reply was written. Created on first use: most requests never read it. Reading it means
   * that the route waits for an event: `text` and `parsed` are released, because thousands of requests may wait at once.
   */
  readonly gone: AbortSignal;
}

/** One server-sent event. Control frames carry no id, so that a client never resumes after one. */
export interface ServerSentEvent {
  event?: string;
  id?: string;
  data: string;
}

/** Passed to a streaming reply: `send` returns false when the reader is too slow and the frame was not accepted. */
export interface EventSink {
  send(event: ServerSentEvent): boolean;
  /** True while `send` accepts nothing. */
  readonly full: boolean;
  /** Resolves when the reader has caught up after a `send` that returned false; also when it has disconnected. */
  drained(): Promise<void>;
  end(): void;
  readonly gone: AbortSignal;
}

export interface HttpReply {
  status: number;
  headers?: Readonly<Record<string, string>>;
  body?: string | Uint8Array | LongBytes | Readable;
  /** Instead of a body: server-sent events, until `end` or until the client disconnects. */
  events?: (sink: EventSink) => void;
  /** Called when the reply could not be delivered because the client had disconnected. It must take back what the reply granted. */
  undelivered?: () => void;
  /** Called when the system has taken the reply. Only together with `undelivered`. */
  delivered?: () => void;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Segments; `:name` matches one segment. For example `/api/jobs/:lease/heartbeat`. */
  readonly path: string;
  /** The action of the route; the table of actions defines which tokens allow it. */
  readonly action: Action;
  /** A second action of the route, such as reading the run that the request changed. A token must allow both actions. */
  readonly also?: Action;
  /** True for a page that people open in a browser: links from other sites may lead to it. */
  readonly page?: boolean;
  /**
   * `text` reads the whole body (at most `bodyMax` bytes, or `payloadBytes` of the limits where the action carries a payload); `stream`
   * passes it on unread; `none` ignores it.
   */
  readonly body: "none" | "text" | "stream";
  readonly bodyMax?: number;
  /** True when a `text` body may be larger than a payload: the route does not store it as one value. */
  readonly takesLarge?: boolean;
  /** True when the route reads its `text` body in slices and counts the JSON values itself; otherwise the listener counts them. */
  readonly countsValues?: boolean;
  /**
   * True for a route without a body that reads only through the engine. Any node of a cluster may perform it with the rows that all nodes
   * share; when the rows are not enough, the node passes the request on.
   */
  readonly stored?: true;
  /** True when a reply may be a stream or events; such replies of other routes are refused as programming errors. */
  readonly openEnded?: boolean;
  handle(request: HttpRequest): HttpReply | Promise<HttpReply>;
}

/** The refusals of the access check and the server, which replace a route's own reply. */
export type ProblemKind =
  | "unauthorized"
  | "forbidden"
  | "not-found"
  | "method-not-allowed"
  | "too-large"
  | "bad-request"
  | "overloaded"
  | "unavailable"
  | "internal";

export interface Problem {
  kind: ProblemKind;
  /** The status in our own API. */
  status: number;
  message: string;
  /** The code of the LongshoreError that a handler threw, if it was one. */
  code?: string;
  /** The place of the mistake in the input, when the error has one. */
  detail?: Readonly<{ field?: string; expected?: string; line?: number; column?: number }>;
  /** Headers of this refusal (`allow`, `retry-after`, `www-authenticate`); the server adds them to a reply with status 400 or above. */
  headers?: Readonly<Record<string, string>>;
}

/** A protocol's routes with its own error format. */
export interface RouteGroup {
  readonly name: string;
  readonly routes: readonly Route[];
  /**
   * Paths of this protocol that the server does not serve, and for each the name of the missing feature. The refusal of a request contains
   * this name.
   */
  readonly unserved?: Readonly<Record<string, string>>;
  /** Converts a refusal to this protocol's error format. `route` is absent when none matched. */
  refuse(problem: Problem, route: Route | undefined): HttpReply;
  /** The reply that an error of a handler carries; undefined for every other error. */
  thrown?(error: unknown): HttpReply | undefined;
}
