// Replies of the server half: README.md, "Answers". Ids are plain text; an empty reply has neither body nor type.

import { LongshoreError } from "../../../core/errors.ts";
import { writeExact } from "../../../core/json/json-exact.ts";
import type { LongBytes } from "../../../core/long-bytes.ts";
import type { HttpReply, Problem } from "../../../net/http/http.ts";
import type { Violation } from "../dialect/violation.ts";
import type { ErrorBody } from "../wire/shapes.ts";

const jsonHeaders = { "content-type": "application/json" } as const;
const textHeaders = { "content-type": "text/plain;charset=UTF-8" } as const;

export const nothing: HttpReply = { status: 200 };
export const noContent: HttpReply = { status: 204 };
/** The real server sends no body here. */
export const noSecret: HttpReply = { status: 404 };

export function text(body: string): HttpReply {
  return { status: 200, headers: textHeaders, body };
}

export function json(value: unknown): HttpReply {
  return jsonText(writeExact(value));
}

export function jsonText(body: string | LongBytes): HttpReply {
  return { status: 200, headers: jsonHeaders, body };
}

/** Around the pieces of a map, and around a page of results. */
export const braces = () => ["{", "}"] as const;
export const hits = (total: number) => () => [`{"totalHits":${total},"results":[`, "]}"] as const;

/** Thrown by handlers, turned into a reply by the routes. */
export class Refused extends Error {
  readonly reply: HttpReply;

  constructor(status: number, message: string, fields: Partial<ErrorBody> = {}) {
    super(message);
    this.reply = refusal(status, message, fields);
  }
}

/** Clients expect a name here. Conductor sends its host name. This server does not, because unauthenticated callers get this reply too. */
const instance = "longshore";

export function refusal(status: number, message: string, fields: Partial<ErrorBody> = {}): HttpReply {
  const body: ErrorBody = { status, message, instance, retryable: false, ...fields };
  return { status, headers: jsonHeaders, body: JSON.stringify(body) };
}

export const badRequest = (message: string) => new Refused(400, message);
export const notFound = (message: string) => new Refused(404, message);
export const conflict = (message: string) => new Refused(409, message);

/**
 * The format of Conductor for an invalid document; it has no `instance`. The SDKs show only the message, so it also says what this server
 * does not support.
 */
export function invalid(violations: readonly Violation[]): Refused {
  const own = violations.find(({ isUnsupported }) => isUnsupported);
  const detail = own === undefined ? "" : ` ${own.path}: ${own.message}`;
  return new Refused(400, `Validation failed, check below errors for detail.${detail}`, {
    instance: undefined,
    validationErrors: violations.map(({ path, message, invalidValue }) => ({ path, message, invalidValue })),
  });
}

/** The reply to an error of a handler or of the server itself. */
export function refuse(problem: Problem): HttpReply {
  if (problem.kind === "unauthorized" || problem.kind === "forbidden") {
    return refusal(problem.status, problem.message, { error: "INVALID_TOKEN" });
  }
  if (problem.kind === "not-found") return refusal(404, problem.message);
  return refusal(problem.status, problem.message, { retryable: problem.kind === "unavailable" || problem.kind === "overloaded" });
}

/** An error of the engine in this wire's format; undefined for an error that is not for the client. */
export function refusedByCore(error: unknown): Refused | undefined {
  if (error instanceof Refused) return error;
  if (!(error instanceof LongshoreError)) return undefined;
  if (error.code === "LONGSHORE_CONFLICT") return conflict(error.message);
  if (error.code === "LONGSHORE_BAD_DEFINITION" || error.code === "LONGSHORE_BAD_INPUT") return badRequest(error.message);
  return undefined;
}

/** Why the engine has refused what a task or a handler starts; undefined for an error that is not for its author. */
export function refusalOf(error: unknown): string | undefined {
  return isLimit(error) ? error.message : refusedByCore(error)?.message;
}

/** There may be room later. */
export function isLimit(error: unknown): error is LongshoreError {
  return error instanceof LongshoreError && error.code === "LONGSHORE_LIMIT";
}
