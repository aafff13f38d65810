// Processes a request, in this order: find its route, check access, read its body, call the handler, write the reply. Every refusal on the
// way has the format of the group that owns the path.

import { actions } from "../../core/actions.ts";
import { parseLarge, sliceChars } from "../../core/json/json-slices.ts";
import type { Logger } from "../../core/logger.ts";
import { noticedMs, type Stopwatch } from "../../core/watchdog.ts";
import type { HttpReply, Problem, Route } from "../http/http.ts";
import { valuesMaxOf } from "../http/request-size.ts";
import type { Admission } from "./admission.ts";
import type { AnswerSlots } from "./answer-slots.ts";
import { announcesBody, announcesMoreThan, type BodyOutcome } from "./body.ts";
import type { BodyLimits } from "./body-reading.ts";
import type { Connections } from "./connections.ts";
import type { Exchange } from "./exchange.ts";
import type { Gate } from "./gate.ts";
import type { HttpLimits } from "./limits.ts";
import {
  badRequest,
  bodyStalled,
  bodyTooLarge,
  noRoomForBody,
  noRoute,
  notUtf8,
  problemOf,
  tooManyValues,
  urlTooLong,
} from "./problems.ts";
import type { ReplyWriter } from "./reply.ts";
import type { Match } from "./router.ts";
import type { Traffic } from "./traffic.ts";

export interface DispatchOptions {
  gate: Gate;
  connections: Connections;
  places: Admission;
  slots: AnswerSlots;
  writer: ReplyWriter;
  traffic: Traffic;
  logger: Logger;
  limits: HttpLimits;
  /** Is notified of handlers that blocked the event loop for long. */
  watch?: Stopwatch;
}

/** Processes an exchange. `match` is the router's result for its path. */
export type Dispatch = (exchange: Exchange, match: Match) => void;

export function createDispatch(options: DispatchOptions): Dispatch {
  const { gate, connections, places, slots, writer, traffic, logger, limits, watch } = options;

  function dispatch(exchange: Exchange, match: Match): void {
    connections.begin(exchange.connection, exchange);
    const problem = screen(exchange);
    if (problem !== undefined) return refuse(exchange, problem);
    if (isPreflight(exchange, match)) return answer(exchange, preflight(exchange, match));
    const refused = admit(exchange, match);
    if (refused !== undefined) return refuse(exchange, refused);
    receive(exchange, (match.entry as NonNullable<Match["entry"]>).route);
  }

  /** The checks for every request, independent of its path. */
  function screen(exchange: Exchange): Problem | undefined {
    if (exchange.url.length > limits.urlChars) return urlTooLong(limits.urlChars);
    const foreign = gate.screen(exchange.headers, exchange.entry?.route);
    if (foreign !== undefined) return foreign;
    exchange.allowedOrigin = gate.allowedOrigin(exchange.headers);
    return undefined;
  }

  /** The checks for a route: that it exists, its parameters, the token. */
  function admit(exchange: Exchange, match: Match): Problem | undefined {
    const { entry } = match;
    if (entry === undefined) return noRoute(exchange.method, exchange.path, match);
    const { problem, caller } = gate.authorize(exchange.headers, entry.route.action, entry.route.also);
    exchange.caller = caller;
    if (problem !== undefined) return problem;
    const full = places.enter(exchange.connection, exchange, caller.name, entry.route.action);
    if (full !== undefined) return full;
    return entry.names.length === 0 ? undefined : takeParams(exchange, entry.names, match.values, limits.idChars);
  }

  function receive(exchange: Exchange, route: Route): void {
    if (!announcesBody(exchange.headers)) return run(exchange, route);
    const bytesMax = bytesOf(route, limits);
    if (announcesMoreThan(exchange.headers, bytesMax)) return refuse(exchange, bodyTooLarge(bytesMax));
    if (route.body === "stream") {
      exchange.openStream(bytesMax);
      return run(exchange, route);
    }
    const bounds: BodyLimits = { bytesMax, valuesMax: valuesOf(route, limits), keep: route.body === "text" };
    exchange.readText(bounds, (outcome) => {
      if (typeof outcome === "string") return refuse(exchange, unread(outcome, bounds, limits));
      exchange.text = outcome.text;
      if (outcome.text.length <= sliceChars || route.countsValues) run(exchange, route);
      else void runLarge(exchange, route);
    });
  }

  /** Parses a large body in slices before its route gets it; invalid JSON is left to the route. */
  async function runLarge(exchange: Exchange, route: Route): Promise<void> {
    exchange.parsed = await parseLarge(exchange.text);
    run(exchange, route);
  }

  function run(exchange: Exchange, route: Route): void {
    if (route.openEnded || !slots.counts(route.action)) return handle(exchange, route);
    try {
      const turn = slots.enter(exchange, exchange.text.length, exchange.caller.name);
      if (turn === undefined) make(exchange, route);
      else void turn.then(() => make(exchange, route));
    } catch (error) {
      fail(exchange, error);
    }
  }

  /** Builds the response in the slot of the exchange, and releases the slot. */
  function make(exchange: Exchange, route: Route): void {
    exchange.waits = () => slots.leave(exchange);
    if (exchange.connection.socket.writable) handle(exchange, route);
    else answer(exchange, { status: 204 });
  }

  function handle(exchange: Exchange, route: Route): void {
    let reply: HttpReply | Promise<HttpReply>;
    const startedAt = performance.now();
    try {
      reply = route.handle(exchange);
    } catch (error) {
      return fail(exchange, error);
    }
    const ms = performance.now() - startedAt;
    if (ms >= noticedMs) watch?.ran(`${route.method} ${route.path}`, ms);
    if (!(reply instanceof Promise)) return answer(exchange, reply);
    reply.then(
      (settled) => answer(exchange, settled),
      (error: unknown) => fail(exchange, error),
    );
  }

  function answer(exchange: Exchange, reply: HttpReply): void {
    exchange.dropBody();
    try {
      writer.write(exchange, reply);
      traffic.answered(exchange, reply.status);
    } catch (error) {
      return fail(exchange, error);
    }
    slots.leave(exchange);
  }

  function fail(exchange: Exchange, error: unknown): void {
    const thrown = exchange.begun ? undefined : exchange.group.thrown?.(error);
    if (thrown !== undefined) return answer(exchange, thrown);
    const { problem, incident } = problemOf(error);
    if (incident !== undefined) {
      logger.error("A request failed", { incident, method: exchange.method, route: exchange.entry?.route.path, error });
    }
    slots.leave(exchange);
    if (exchange.begun) exchange.connection.socket.destroy();
    else refuse(exchange, problem);
  }

  function refuse(exchange: Exchange, problem: Problem): void {
    const { method, entry, connection, caller } = exchange;
    exchange.dropBody();
    traffic.refused({ method, route: entry?.route.path, from: connection.socket.remoteAddress, caller }, problem);
    try {
      const reply = exchange.group.refuse(problem, exchange.entry?.route);
      const complete = problem.headers !== undefined && reply.status >= 400;
      writer.write(exchange, complete ? { ...reply, headers: { ...problem.headers, ...reply.headers } } : reply);
      traffic.answered(exchange, reply.status);
    } catch (error) {
      // A refusal that cannot be written is a mistake of its group; the only option left is to disconnect.
      logger.error("A refusal could not be written", { group: exchange.group.name, kind: problem.kind, error });
      exchange.connection.socket.destroy();
    }
  }

  return dispatch;
}

/** The limit is small unless the action carries a payload, so a new route is protected by default. */
function bytesOf(route: Route, limits: HttpLimits): number {
  const { action, bodyMax = limits.bodyBytes } = route;
  const { who, carries } = actions[action];
  if (who === "anyone") return Math.min(limits.openBytes, bodyMax);
  if (!carries) return Math.min(limits.bodyBytes, bodyMax);
  return route.body === "stream" || route.takesLarge ? bodyMax : Math.min(limits.payloadBytes, bodyMax);
}

function valuesOf({ action, countsValues }: Route, limits: HttpLimits): number {
  if (countsValues) return Number.POSITIVE_INFINITY;
  return valuesMaxOf(action, limits);
}

/** The problem of a body without text. */
function unread(outcome: Exclude<BodyOutcome, object>, { bytesMax, valuesMax }: BodyLimits, limits: HttpLimits): Problem {
  if (outcome === "too-large") return bodyTooLarge(bytesMax);
  if (outcome === "too-many-values") return tooManyValues(valuesMax);
  if (outcome === "stalled") return bodyStalled(limits.receiveStallMs, limits.receiveRate);
  if (outcome === "no-room") return noRoomForBody(limits.receivingBytes);
  return notUtf8();
}

function takeParams(exchange: Exchange, names: readonly string[], values: readonly string[], charsMax: number): Problem | undefined {
  const params: Record<string, string> = {};
  for (let at = 0; at < names.length; at++) {
    const name = names[at] as string;
    const value = decode(values[at] as string);
    if (value === undefined) return badRequest(`The path parameter ${name} has a malformed percent-escape.`, name, "% and two hex digits");
    if (value.length > charsMax) {
      return badRequest(`The path parameter ${name} is longer than ${charsMax} characters.`, name, `at most ${charsMax} characters`);
    }
    params[name] = value;
  }
  exchange.params = params;
  return undefined;
}

function decode(text: string): string | undefined {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    // Reading a parameter throws only for a malformed escape, which the caller reports.
    return undefined;
  }
}

function isPreflight(exchange: Exchange, match: Match): boolean {
  if (exchange.method !== "OPTIONS" || exchange.allowedOrigin === undefined || match.methods.length === 0) return false;
  return exchange.headers["access-control-request-method"] !== undefined;
}

/** How long a browser may cache the response, in seconds: ten minutes, which every browser honours. */
const preflightSecs = "600";

/** Only for an allowed origin: `screen` has refused the others. Such a page may send any headers. */
function preflight(exchange: Exchange, match: Match): HttpReply {
  const headers: Record<string, string> = {
    "access-control-allow-methods": match.methods.join(","),
    "access-control-max-age": preflightSecs,
  };
  const wanted = exchange.headers["access-control-request-headers"];
  if (wanted !== undefined) headers["access-control-allow-headers"] = wanted;
  if (exchange.headers["access-control-request-private-network"] === "true") headers["access-control-allow-private-network"] = "true";
  return { status: 204, headers };
}
