// The access check of every route. It asks three questions. Is the request meant for this server (Host)? May the page that sent it call
// this server (Origin, and the site that browsers report)? Does its token allow the action? The first two keep foreign web pages away from
// a server on loopback, which has no tokens by default.

import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";
import { type Action, actions, type Caller, everyone, stranger } from "../../core/actions.ts";
import { LongshoreError } from "../../core/errors.ts";
import { isLoopback } from "../../core/loopback.ts";
import type { Problem, Route } from "../http/http.ts";
import type { Auth } from "./auth.ts";

export interface GateOptions {
  auth: Auth;
  /** The address that the server is bound to. */
  bound: string;
  /** Further names under which clients may call this server. */
  hosts?: readonly string[];
  /** Web origins, such as `https://ci.example.org`, whose pages may call this server. Our own origin is always allowed. */
  origins?: readonly string[];
}

/** The result of `authorize`. A refused request names its caller too, for the log. */
export interface Admission {
  readonly problem?: Problem;
  readonly caller: Caller;
}

/** What the access check needs to know about a route. */
export type Target = Pick<Route, "method" | "action" | "page">;

export interface Gate {
  /** Refuses a request by its Host and by the page that sent it. Checks every request, even when its path is unknown and has no route. */
  screen(headers: IncomingHttpHeaders, route?: Target): Problem | undefined;
  /** Refuses a request whose token does not allow the action, or its further action. */
  authorize(headers: IncomingHttpHeaders, action: Action, also?: Action): Admission;
  /** The foreign origin that the response must name, so that a page of this origin may read it. Undefined for all other requests. */
  allowedOrigin(headers: IncomingHttpHeaders): string | undefined;
}

export function createGate(options: GateOptions): Gate {
  const { auth } = options;
  const acceptsHost = hostRule(options);
  const origins = new Set((options.origins ?? []).map(parseOrigin));

  /** A page of this server. Host was checked before, so a rebound name does not get here. */
  const isOwn = (origin: string, host: string | undefined) => origin === `http://${host}` || origin === `https://${host}`;

  return {
    screen(headers, route) {
      const { host, origin } = headers;
      if (!acceptsHost(host)) return host === undefined || hostShape.test(host) ? wrongHost(host) : malformedHost(host);
      if (origin !== undefined && !origins.has(origin) && !isOwn(origin, host)) return foreignOrigin(origin);
      // Links, images, scripts and no-cors fetches of a foreign page have no Origin, but browsers report their site.
      const site = headers["sec-fetch-site"];
      const isForeign = origin === undefined && site !== undefined && site !== "same-origin" && site !== "none";
      if (isForeign && !(route?.page === true && opensPage(headers))) return foreignOrigin(`${String(site)} page`);
      return route !== undefined && !actions[route.action].reads && isBrowsing(headers, route.method) ? onlyReads(route) : undefined;
    },
    authorize(headers, action, also = action) {
      if (!auth.required) return admitted;
      if (actions[action].who === "anyone") return open;
      const shown = headers.authorization ?? bareToken(headers);
      const caller = auth.identify(shown);
      if (caller === undefined) return shown === undefined ? noToken : badToken;
      if (!caller.may(action)) return { problem: notAllowed(action), caller };
      return caller.may(also) ? { caller } : { problem: notAllowed(also), caller };
    },
    allowedOrigin(headers) {
      const { origin } = headers;
      return origin !== undefined && origins.has(origin) ? origin : undefined;
    },
  };
}

/** True when a person follows a link to the page. A frame in a foreign page does not count. */
function opensPage(headers: IncomingHttpHeaders): boolean {
  const dest = headers["sec-fetch-dest"];
  return headers["sec-fetch-mode"] === "navigate" && (dest === undefined || dest === "document");
}

/**
 * True when a browser navigates to an address: typed, by a link or by a form. Some protocols take tasks by GET, and a navigation must not
 * take a task. Over plain HTTP beyond loopback, browsers do not send their site and mode. But all browsers call themselves Mozilla, and no
 * worker does.
 */
function isBrowsing(headers: IncomingHttpHeaders, method: Route["method"]): boolean {
  if (headers["sec-fetch-mode"] === "navigate") return true;
  return method === "GET" && headers["user-agent"]?.startsWith("Mozilla/") === true;
}

/** Some clients send the bare token in a separate header. */
function bareToken(headers: IncomingHttpHeaders): string | undefined {
  const token = headers["x-authorization"];
  return typeof token === "string" ? `Bearer ${token}` : undefined;
}

/**
 * Which Host headers are accepted. On loopback, or with `hosts`: only loopback names, the bound address and `hosts`. A page whose name was
 * rebound to 127.0.0.1 sends its own name. On other addresses without `hosts`: any name if tokens are required. If not (insecure): only
 * hosts that public DNS cannot assign, which are addresses and names of one label.
 */
function hostRule(options: GateOptions): (host: string | undefined) => boolean {
  const names = new Set(["localhost", "127.0.0.1", "[::1]", bracketed(options.bound.toLowerCase())]);
  for (const host of options.hosts ?? []) names.add(nameOf(host));
  const strict = isLoopback(options.bound) || (options.hosts ?? []).length > 0;
  if (strict) return remembering((host) => names.has(nameOf(host)));
  if (options.auth.required) {
    const isNamed = remembering(() => true);
    // HTTP/1.0 has no Host, and probes of load balancers still use it.
    return (host) => host === undefined || isNamed(host);
  }
  return remembering((host) => !isPublicName(nameOf(host)));
}

/** Clients of one server send the same Host: the last accepted one is not parsed again. */
function remembering(accepts: (host: string) => boolean): (host: string | undefined) => boolean {
  let last: string | undefined;
  return (host) => {
    if (host === undefined) return false;
    if (host === last) return true;
    if (!hostShape.test(host) || !accepts(host)) return false;
    last = host;
    return true;
  };
}

function isPublicName(name: string): boolean {
  return !name.startsWith("[") && isIP(name) === 0 && name.includes(".");
}

/** A name or an address, and a port. Two Host headers arrive joined by a comma, which this shape refuses. */
const hostShape = /^(?:[\w.~-]+|\[[\w:.%-]+\])(?::\d*)?$/i;

/** The name of a valid Host value without its port, in lower case. */
function nameOf(host: string): string {
  const colon = host.lastIndexOf(":");
  const name = colon > host.lastIndexOf("]") ? host.slice(0, colon) : host;
  return name.toLowerCase();
}

function bracketed(address: string): string {
  return isIP(address) === 6 ? `[${address}]` : address;
}

function parseOrigin(text: string): string {
  const origin = URL.canParse(text) ? new URL(text).origin : "null";
  if (origin !== "null" && origin === text.replace(/\/$/, "").toLowerCase()) return origin;
  throw new LongshoreError("LONGSHORE_BAD_CONFIG", `${JSON.stringify(text)} is not a web origin; expected scheme, host and port only.`, {
    detail: { field: "origins", expected: "for example https://ci.example.org or http://localhost:5173" },
  });
}

const admitted: Admission = { caller: everyone };
const open: Admission = { caller: stranger };
// Nothing in this text may look like a token: the log removes the text after that word.
const noToken: Admission = {
  problem: unauthorized("This route needs a token: in the header `Authorization`, after `Bearer`.", "Bearer"),
  caller: stranger,
};
const badToken: Admission = {
  problem: unauthorized("The token is not known to this server.", 'Bearer error="invalid_token"'),
  caller: stranger,
};

function unauthorized(message: string, challenge: string): Problem {
  return { kind: "unauthorized", status: 401, message, headers: { "www-authenticate": challenge } };
}

function notAllowed(action: Action): Problem {
  const scope = actions[action].who;
  return {
    kind: "forbidden",
    status: 403,
    message: `The token does not have the scope ${scope}.`,
    headers: { "www-authenticate": `Bearer error="insufficient_scope", scope="${scope}"` },
  };
}

function wrongHost(host: string | undefined): Problem {
  const named = host === undefined ? "Without a Host header" : `As ${JSON.stringify(host)}`;
  return {
    kind: "forbidden",
    status: 403,
    message: `${named} this server does not accept; the accepted names are configured when it starts.`,
  };
}

function malformedHost(host: string): Problem {
  const detail = { field: "host", expected: "one name or address, and a port" };
  return { kind: "bad-request", status: 400, message: `The Host is ${JSON.stringify(host)}, expected ${detail.expected}.`, detail };
}

function onlyReads({ method }: Target): Problem {
  return {
    kind: "forbidden",
    status: 403,
    message: `A ${method} of this address changes something, which a visit in a browser must not do; call it with a program.`,
  };
}

function foreignOrigin(origin: string): Problem {
  return {
    kind: "forbidden",
    status: 403,
    message: `Web pages of ${JSON.stringify(origin)} may not call this server; allowed origins are configured at its start.`,
  };
}
