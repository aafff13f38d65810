// What a protocol's server half is made of: routes, request in and reply out. No sockets here; `server/` owns those.
// A protocol lists its routes as data, so that one gate guards all of them and a test can walk the table.

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
  /** The value of a large JSON body, which was read in slices before the route is called; undefined for every other body. See `jsonOf`. */
  readonly parsed: Parsed | undefined;
  /** The body as a stream, only for routes whose `body` is `stream`. */
  readonly stream: Readable;
  /** Reads that stream whole, where it turns out to be text, within the limits that other routes' texts have. */
  streamText(bytesMax: number): Promise<string>;
  /** The caller, and what else it may do. */
  readonly caller: Caller;
  /**
   * Aborted when the client disconnects before the reply was written. Made on first use: most requests never read it. Reading it says that
   * the route waits for something to happen: `text` and `parsed` are let go, for thousands may wait at once.
   */
  readonly gone: AbortSignal;
}

/** One server-sent event. Control frames carry no id, so that a client never resumes after one. */
export interface ServerSentEvent {
  event?: string;
  id?: string;
  data: string;
}

/** Handed to a streaming reply: `send` returns false when the reader is too slow and the frame was not taken. */
export interface EventSink {
  send(event: ServerSentEvent): boolean;
  /** True while `send` takes nothing. */
  readonly full: boolean;
  /** Resolves when the reader has caught up after a `send` that answered false; also when it has gone. */
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
  /** Called when the reply could not be delivered because the client had gone: give back what it was granted. */
  undelivered?: () => void;
}

export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Segments; `:name` takes one segment. For example `/api/jobs/:lease/heartbeat`. */
  readonly path: string;
  /** What it does; the table of actions defines which tokens allow that. */
  readonly action: Action;
  /** What its answer does besides, such as reading a run that the request changed: a token must allow both. */
  readonly also?: Action;
  /** True for a page that people open in a browser: links and other sites may lead to it. */
  readonly page?: boolean;
  /** `text` reads the body whole (at most `bodyMax` bytes, and at most `payloadBytes` of the limits, where its action carries something); `stream` hands it over unread; `none` ignores it. */
  readonly body: "none" | "text" | "stream";
  readonly bodyMax?: number;
  /** True when a `text` body may be larger than a payload: the route stores none of it in one piece that is. */
  readonly takesLarge?: boolean;
  /** True when the route reads its `text` body in slices and counts the JSON values of each by itself; otherwise the listener does. */
  readonly countsValues?: boolean;
  /** True when a reply may be a stream or events; such replies of other routes are refused as mistakes. */
  readonly openEnded?: boolean;
  handle(request: HttpRequest): HttpReply | Promise<HttpReply>;
}

/** What the gate and the server refuse by themselves, before or instead of a route's own answer. */
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
  /** The status our own API would answer. */
  status: number;
  message: string;
  /** The code of the LongshoreError that a handler threw, when it was one. */
  code?: string;
  /** The place of the mistake in the input, when the error has one. */
  detail?: Readonly<{ field?: string; expected?: string; line?: number; column?: number }>;
  /** Headers that belong to this refusal (`allow`, `retry-after`, `www-authenticate`); the server adds them to a reply of 400 or above. */
  headers?: Readonly<Record<string, string>>;
}

/** A protocol's routes with its own way of saying no. */
export interface RouteGroup {
  readonly name: string;
  readonly routes: readonly Route[];
  /** Turns a refusal into this protocol's own error shape. `route` is absent when none matched. */
  refuse(problem: Problem, route: Route | undefined): HttpReply;
  /** The reply that an error of a handler carries; undefined for every other error. */
  thrown?(error: unknown): HttpReply | undefined;
}
