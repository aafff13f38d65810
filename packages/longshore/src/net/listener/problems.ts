// The refusals of the listener, and the HTTP meaning of a handler's errors. Each is a Problem, which the group that owns the path converts
// to its own format.

import { randomUUID } from "node:crypto";
import { type ErrorCode, LongshoreError } from "../../core/errors.ts";
import { isQuotaReached } from "../../core/quotas.ts";
import type { Problem, ProblemKind } from "../http/http.ts";
import type { Match } from "./router.ts";

/**
 * How many seconds a refused client should wait: long enough not to overload a server with a full disk, short enough to resume unnoticed.
 */
const retryAfterSecs = "5";
/** A server at its limit of requests frees places within a second. */
const overloadedSecs = "1";
/** How much of an unknown path is quoted. */
const shownCharsMax = 200;

const byCode: Readonly<Partial<Record<ErrorCode, { kind: ProblemKind; status: number; retryAfter?: string }>>> = {
  LONGSHORE_BAD_INPUT: { kind: "bad-request", status: 400 },
  LONGSHORE_BAD_DEFINITION: { kind: "bad-request", status: 400 },
  LONGSHORE_UNAUTHORIZED: { kind: "forbidden", status: 403 },
  LONGSHORE_NOT_FOUND: { kind: "not-found", status: 404 },
  LONGSHORE_LIMIT: { kind: "overloaded", status: 429, retryAfter: overloadedSecs },
  LONGSHORE_STORE_UNAVAILABLE: { kind: "unavailable", status: 503, retryAfter: retryAfterSecs },
  LONGSHORE_CLOSED: { kind: "unavailable", status: 503, retryAfter: retryAfterSecs },
  LONGSHORE_SHUTDOWN: { kind: "unavailable", status: 503, retryAfter: retryAfterSecs },
};

/**
 * The HTTP meaning of a thrown error. `incident` is set for an unexpected failure: the client receives only that id, and the log has the
 * rest.
 */
export function problemOf(error: unknown): { problem: Problem; incident?: string } {
  const known = error instanceof LongshoreError ? meaningOf(error) : undefined;
  if (known !== undefined) return { problem: known };
  const incident = randomUUID();
  const message = `The server failed to answer; its log has the reason under ${incident}.`;
  return { problem: { kind: "internal", status: 500, message }, incident };
}

function meaningOf(error: LongshoreError): Problem | undefined {
  if (error instanceof ProblemError) return error.problem;
  const { code, detail, message } = error;
  // Waiting does not change the limit of a body or its response: 413 instead of 429, which clients repeat without end.
  if (code === "LONGSHORE_LIMIT" && (detail.field === "body" || detail.field === "answer"))
    return { kind: "too-large", status: 413, message, code, detail };
  // An operator must make room; waiting does not help.
  if (isQuotaReached(error)) return { kind: "unavailable", status: 507, message, code, detail };
  const known = byCode[code];
  if (known === undefined) return undefined;
  const { kind, status, retryAfter } = known;
  const problem: Problem = { kind, status, message, code, detail };
  if (retryAfter !== undefined) problem.headers = { "retry-after": retryAfter };
  return problem;
}

export function bodyTooLarge(bytesMax: number): Problem {
  return { kind: "too-large", status: 413, message: tooLargeMessage(bytesMax), detail: bodyDetail(bytesMax) };
}

/** No client reads this refusal, because the client has disconnected. It ends the route, and is counted. */
export function bodyBrokeOff(): Problem {
  return badRequest("The body broke off before its end.", "body", "a whole body");
}

export function notUtf8(): Problem {
  return badRequest("The body is not valid UTF-8.", "body", "UTF-8");
}

/** A refusal of the listener as an error: when a handler rethrows it, the response is the listener's own refusal. */
class ProblemError extends LongshoreError {
  readonly problem: Problem;

  constructor(problem: Problem) {
    const { kind, message, detail } = problem;
    super(kind === "bad-request" ? "LONGSHORE_BAD_INPUT" : "LONGSHORE_LIMIT", message, detail === undefined ? {} : { detail });
    this.problem = problem;
  }
}

export function problemError(problem: Problem): LongshoreError {
  return new ProblemError(problem);
}

/** The refusal that an error carries. */
export function problemIn(error: unknown): Problem | undefined {
  return error instanceof ProblemError ? error.problem : undefined;
}

export function tooManyValues(valuesMax: number): Problem {
  const message = `The body holds more than ${valuesMax} JSON values and names, the limit of this route: send less at once, or store it as a blob.`;
  return { kind: "too-large", status: 413, message, detail: { field: "body", expected: `at most ${valuesMax} values` } };
}

/** The connection ends, because the next bytes could be the middle of a body. */
export function bodyStalled(ms: number, perSecond: number): Problem {
  const message = `The body came too slowly: nothing for ${ms} ms (receiveStallMs), or less than ${perSecond} bytes a second on average (receiveRate). Send it at once.`;
  return { kind: "bad-request", status: 408, message, headers: { connection: "close" } };
}

export function noRoomForAnswer(bytesMax: number): Problem {
  const message = `The server has ${bytesMax} bytes of answers that their readers have not taken, its limit (sendingBytes). Try again in a moment.`;
  return { kind: "overloaded", status: 503, message, headers: { "retry-after": overloadedSecs } };
}

export function noRoomForBody(bytesMax: number): Problem {
  const message = `The server is receiving ${bytesMax} bytes of bodies already, its limit (receivingBytes). Try again in a moment.`;
  return { kind: "overloaded", status: 503, message, headers: { "retry-after": overloadedSecs } };
}

/** Too many requests wait for their responses to be built. */
export function noRoomToWait(charsMax: number): Problem {
  const message = `Requests of ${charsMax} characters wait for their answers to be made, which is the limit. Try again in a moment.`;
  return { kind: "overloaded", status: 503, message, headers: { "retry-after": overloadedSecs } };
}

export function urlTooLong(charsMax: number): Problem {
  const detail = { field: "url", expected: `at most ${charsMax} characters` };
  return { kind: "too-large", status: 414, message: `The URL is longer than ${charsMax} characters.`, detail };
}

export function badRequest(message: string, field: string, expected: string): Problem {
  return { kind: "bad-request", status: 400, message, detail: { field, expected } };
}

/** `who` has reached its limit of concurrent requests: the server, a connection, a token. */
export function overloaded(who: string, inFlightMax: number): Problem {
  const message = `There are ${inFlightMax} requests of ${who} under way, the limit. Wait for answers before you send more.`;
  return { kind: "overloaded", status: 503, message, headers: { "retry-after": overloadedSecs } };
}

/** No route: 404 for an unknown path, or for one of a protocol that is not served; 405 with the methods of a known one. */
export function noRoute(method: string, path: string, { methods, unserved }: Pick<Match, "methods" | "unserved">): Problem {
  const shown = path.length > shownCharsMax ? `${path.slice(0, shownCharsMax)}...` : path;
  if (unserved !== undefined)
    return { kind: "not-found", status: 404, message: `Longshore does not serve ${unserved}: there is nothing at ${shown}.` };
  if (methods.length === 0) return { kind: "not-found", status: 404, message: `There is nothing at ${shown}.` };
  const allow = methods.join(",");
  const message = `${shown} does not take ${method}, only ${allow}.`;
  return { kind: "method-not-allowed", status: 405, message, headers: { allow }, detail: { field: "method", expected: allow } };
}

function bodyDetail(bytesMax: number): { field: string; expected: string } {
  return { field: "body", expected: `at most ${bytesMax} bytes` };
}

function tooLargeMessage(bytesMax: number): string {
  return `The body is larger than ${bytesMax} bytes, the limit of this route.`;
}
