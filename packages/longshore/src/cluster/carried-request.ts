// A request on its way from the node that received it to the owner of the data, as JSON. The node has checked its token, its size and its
// path; the owner only performs it.

import type { IncomingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { type Caller, callerWith, type TokenScope } from "../core/actions.ts";
import type { ByteBudget } from "../core/byte-budget.ts";
import type { Parsed } from "../core/json/json-slices.ts";
import type { HttpRequest } from "../net/http/http.ts";
import { collectText } from "../net/listener/body-reading.ts";

export interface CarriedRequest {
  /** The method and path of its route, as in the table of routes (`routeName`). */
  readonly route: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  /** The query as it was sent. */
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly caller: CarriedCaller;
  /** One of our ids, made by the node. */
  readonly id: string;
  /** A short streamed body, in base64. */
  readonly bytes?: string;
  /** The pieces of a longer one are sent under this name. */
  readonly upload?: string;
  /**
   * True when the request was begun before under the same id. When the link itself sends a call again, it sets `LinkCall.isRepeat` instead.
   */
  readonly isRepeat?: true;
}

export interface CarriedCaller {
  readonly name?: string;
  readonly scopes: readonly TokenScope[];
}

/** Headers that no route needs: those of the connection and its encoding, and those with secrets. */
const leftOut: ReadonlySet<string> = new Set([
  ...["authorization", "x-authorization", "proxy-authorization", "cookie"],
  ...["connection", "keep-alive", "accept-encoding", "content-length", "transfer-encoding"],
]);

/** The headers of a request, or the metadata of a gRPC call, without those that are left out. */
export function carriedHeaders<Headers extends IncomingHttpHeaders>(headers: Headers): Headers {
  const carried = {} as Headers;
  for (const name in headers) if (!leftOut.has(name)) carried[name] = headers[name];
  return carried;
}

const everyScope: readonly TokenScope[] = ["worker", "operator", "read"];
/** For each scope, an action that needs this scope. */
const probes = { worker: "task.claim", operator: "run.start", read: "run.read" } as const;

export function carriedCaller({ name, may }: Caller): CarriedCaller {
  const scopes = may(probes.operator) ? ["operator" as const] : everyScope.filter((scope) => may(probes[scope]));
  return name === undefined ? { scopes } : { name, scopes };
}

/** Callers by name and scopes. They are kept, because computing what a caller may do takes longer than a request. */
export class Callers {
  readonly #known = new Map<string, Caller>();

  of({ name, scopes }: CarriedCaller): Caller {
    const key = `${scopes.join(" ")}/${name ?? ""}`;
    let caller = this.#known.get(key);
    if (caller === undefined) {
      caller = callerWith(name, scopes);
      // There are as many callers as tokens, so only a faulty node that invents names reaches this limit.
      if (this.#known.size < callersMax) this.#known.set(key, caller);
    }
    return caller;
  }
}

const callersMax = 10_000;

/** What performing a carried request needs besides its fields. */
export interface Performing {
  readonly caller: Caller;
  /** The signal of the call is made on first use. */
  readonly call: { readonly signal: AbortSignal };
  readonly stream: Readable;
  /** The limits of bodies that the route reads as text: bytes for all bodies, and JSON values for each body. */
  readonly texts: { readonly budget: ByteBudget; readonly valuesMax: number };
}

/** The request as a route sees it. */
export class PerformedRequest implements HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly parsed: Parsed | undefined;
  readonly caller: Caller;
  readonly id: string;
  readonly stream: Readable;
  readonly #call: Performing["call"];
  readonly #texts: Performing["texts"];
  readonly #query: string;
  #parsedQuery: URLSearchParams | undefined;

  constructor(carried: CarriedRequest, { caller, call, stream, texts }: Performing, parsed: Parsed | undefined) {
    this.method = carried.route.slice(0, carried.route.indexOf(" "));
    this.path = carried.path;
    this.params = carried.params;
    this.headers = carried.headers;
    this.text = carried.text;
    this.parsed = parsed;
    this.#query = carried.query;
    this.caller = caller;
    this.id = carried.id;
    this.#call = call;
    this.stream = stream;
    this.#texts = texts;
  }

  get gone(): AbortSignal {
    return this.#call.signal;
  }

  get query(): URLSearchParams {
    this.#parsedQuery ??= new URLSearchParams(this.#query);
    return this.#parsedQuery;
  }

  /** The owner checks the limits of the text: the node that received the body passes it on unread. */
  streamText(bytesMax: number): Promise<string> {
    const { budget, valuesMax } = this.#texts;
    return collectText(this.stream, { bytesMax, valuesMax }, budget);
  }
}

/** The stream of a request without a streamed body. */
export function noStream(): Readable {
  return Readable.from([]);
}

/** The name of a route in the table of a node and of its owner. */
export function routeName({ method, path }: { readonly method: string; readonly path: string }): string {
  return `${method} ${path}`;
}
