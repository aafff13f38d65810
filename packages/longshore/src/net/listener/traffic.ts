// The metrics and log lines of requests. Series are looked up once per route and status class, so a request costs only additions. Log lines
// name the route's pattern, never the path or the headers, which may contain secrets.

import type { Caller } from "../../core/actions.ts";
import type { Clock } from "../../core/clock.ts";
import type { Logger } from "../../core/logger.ts";
import type { Counter, Histogram, Metrics } from "../../core/metrics.ts";
import type { Problem } from "../http/http.ts";
import type { Connections } from "./connections.ts";
import type { Exchange } from "./exchange.ts";
import type { RouteEntry } from "./router.ts";

export interface Traffic {
  answered(exchange: Exchange, status: number): void;
  refused(request: RefusedRequest, problem: Problem): void;
  /** A gRPC call is over. `method` is absent when no method has that name. */
  called(method: string | undefined, code: string, caller: Caller): void;
  undelivered(): void;
  /** A connection was handed over to node:http or gRPC. */
  handedOver(): void;
  /**
   * Bytes that never became a request: broken, too slow, or headers too large. `tls`: a failed handshake. `flood`: an HTTP/2 flood. `full`:
   * a connection that was closed or refused at the limit of connections.
   */
  broken(status: number | "tls" | "flood" | "full"): void;
}

export interface RefusedRequest {
  readonly method: string;
  /** The pattern of its route, or the path of its gRPC method; absent when there is none. */
  readonly route: string | undefined;
  readonly from: string | undefined;
  readonly caller: Caller;
}

/** A worker with a wrong token may call several times a second; one line in this time is enough. */
const refusalLogMs = 60_000;

/**
 * Upper bounds in seconds. A request that needs only memory takes less than a millisecond; one that waits for a commit takes as long as
 * fsync.
 */
const requestBounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];

export function createTraffic(
  metrics: Metrics,
  logger: Logger,
  clock: Clock,
  connections: Connections,
  entries: readonly RouteEntry[],
): Traffic {
  const requests = metrics.counter("longshore_http_requests_total", "Requests answered.", ["group", "method", "route", "status"]);
  const times = metrics.histogram(
    "longshore_http_request_seconds",
    "Time from the headers of a request to its reply, without requests that wait for an event.",
    requestBounds,
    ["group", "method", "route"],
  );
  const refusals = metrics.counter("longshore_http_refusals_total", "Requests refused before or instead of their handler.", ["kind"]);
  const broken = metrics.counter("longshore_http_broken_total", "Connections ended because they sent no complete request.", ["status"]);
  const undelivered = metrics
    .counter(
      "longshore_http_undelivered_total",
      "Replies that were given back to their route: the client had disconnected, or there was no room.",
    )
    .with();
  const calls = metrics.counter("longshore_grpc_calls_total", "gRPC calls that are over, by how they ended.", ["method", "code"]);
  const handedOver = metrics.counter("longshore_http_handed_over_total", "Connections handed over to node:http.").with();
  metrics.sampled(
    "gauge",
    "longshore_http_in_flight",
    "Requests under way, long polls and event streams included.",
    () => connections.inFlight,
  );
  metrics.sampled("gauge", "longshore_http_connections", "Open sockets.", () => connections.size);

  const verbose = logger.enabled("debug");
  /** By route, then by status class; the last row is for requests without a route. */
  const counters: (Counter | undefined)[][] = Array.from({ length: entries.length + 1 }, () => new Array(6).fill(undefined));
  /** By route; requests without a route are not timed. */
  const timers: (Histogram | undefined)[] = new Array(entries.length).fill(undefined);
  const logged = new Map<string, { untilMs: number; dropped: number }>();

  function counterFor(exchange: Exchange, statusClass: number): Counter {
    const { entry } = exchange;
    const row = counters[entry === undefined ? entries.length : entry.index] as (Counter | undefined)[];
    const known = row[statusClass];
    if (known !== undefined) return known;
    const made = requests.with(exchange.group.name, entry?.route.method ?? "", entry?.route.path ?? "", `${statusClass}xx`);
    row[statusClass] = made;
    return made;
  }

  function time({ entry, group, begunAt }: Exchange): void {
    if (entry === undefined) return;
    const { method, path } = entry.route;
    timers[entry.index] ??= times.with(group.name, method, path);
    (timers[entry.index] as Histogram).observe((performance.now() - begunAt) / 1_000);
  }

  return {
    answered(exchange, status) {
      counterFor(exchange, Math.trunc(status / 100)).add();
      if (!exchange.hasWaited) time(exchange);
      if (verbose)
        logger.debug("answered", { method: exchange.method, route: exchange.entry?.route.path, status, principal: exchange.caller.name });
    },
    refused({ method, route, from, caller }, problem) {
      refusals.with(problem.kind).add();
      if (problem.kind !== "unauthorized" && problem.kind !== "forbidden" && problem.kind !== "overloaded") return;
      const now = clock.now();
      // Counted for each token, so that refusals of one token do not hide those of another. The number of tokens is limited.
      const subject = caller.name === undefined ? problem.kind : `${problem.kind} ${caller.name}`;
      const last = logged.get(subject);
      if (last !== undefined && now < last.untilMs) {
        last.dropped++;
        return;
      }
      logged.set(subject, { untilMs: now + refusalLogMs, dropped: 0 });
      const fields = { kind: problem.kind, method, route, from, principal: caller.name };
      logger.warn("A request was refused", { ...fields, reason: problem.message, alsoRefused: last?.dropped });
    },
    called(method, code, caller) {
      calls.with(method ?? "", code).add();
      if (verbose) logger.debug("answered", { method: "gRPC", route: method, code, principal: caller.name });
    },
    undelivered: () => undelivered.add(),
    handedOver: () => handedOver.add(),
    broken: (status) => broken.with(String(status)).add(),
  };
}
