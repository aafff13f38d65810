// REST statuses for gRPC codes, and the form of REST errors: {"error": {"code": 404, "message": "...", "status": "NOT_FOUND"}}.

import { LongshoreError } from "../../../../core/errors.ts";
import { BadRequest, codeName, detailOf, GrpcCode, GrpcError } from "../../../../net/grpc/status.ts";
import type { HttpReply, Problem, ProblemKind } from "../../../../net/http/http.ts";

const httpStatuses: { readonly [code: number]: number } = {
  [GrpcCode.INVALID_ARGUMENT]: 400,
  [GrpcCode.OUT_OF_RANGE]: 400,
  [GrpcCode.UNAUTHENTICATED]: 401,
  [GrpcCode.PERMISSION_DENIED]: 403,
  [GrpcCode.NOT_FOUND]: 404,
  [GrpcCode.CANCELLED]: 408,
  [GrpcCode.ALREADY_EXISTS]: 409,
  [GrpcCode.ABORTED]: 409,
  [GrpcCode.FAILED_PRECONDITION]: 412,
  [GrpcCode.RESOURCE_EXHAUSTED]: 429,
  [GrpcCode.UNIMPLEMENTED]: 501,
  [GrpcCode.UNAVAILABLE]: 503,
  [GrpcCode.DEADLINE_EXCEEDED]: 504,
};

const jsonHeaders = { "content-type": "application/json" } as const;

export function refusal(error: GrpcError): HttpReply {
  return errorReply(httpStatuses[error.code] ?? 500, error.message, codeName(error.code));
}

function errorReply(status: number, message: string, name: string): HttpReply {
  return { status, headers: jsonHeaders, body: JSON.stringify({ error: { code: status, message, status: name } }) };
}

/** For refusals of the server itself, and for unexpected errors of a handler. */
const names: { readonly [kind in ProblemKind]: string } = {
  unauthorized: "UNAUTHENTICATED",
  forbidden: "PERMISSION_DENIED",
  "not-found": "NOT_FOUND",
  "method-not-allowed": "UNIMPLEMENTED",
  "too-large": "INVALID_ARGUMENT",
  "bad-request": "INVALID_ARGUMENT",
  overloaded: "RESOURCE_EXHAUSTED",
  unavailable: "UNAVAILABLE",
  internal: "INTERNAL",
};

export function refuseProblem(problem: Problem): HttpReply {
  return errorReply(problem.status, problem.message, names[problem.kind]);
}

/** Converts an error of the core to this protocol's codes; undefined for an error that clients must not see. */
export function grpcErrorOf(error: unknown): GrpcError | undefined {
  if (error instanceof GrpcError) return error;
  if (!(error instanceof LongshoreError)) return undefined;
  if (error.code === "LONGSHORE_BAD_DEFINITION" || error.code === "LONGSHORE_BAD_INPUT") {
    return new GrpcError(GrpcCode.INVALID_ARGUMENT, wholeMessage(error), violationsOf(error), { cause: error });
  }
  // A body or an answer that is too large is refused by the listener.
  if (error.code === "LONGSHORE_LIMIT" && error.detail.field !== "body" && error.detail.field !== "answer")
    return new GrpcError(GrpcCode.RESOURCE_EXHAUSTED, error.message, [], { cause: error });
  return undefined;
}

/** The core has field and expectation in addition to the message. The wire has only a message. */
function wholeMessage({ message, detail: { field, expected } }: LongshoreError): string {
  const more = [expected === undefined ? "" : `expected ${expected}`, field === undefined ? "" : `at ${field}`];
  const missing = more.filter((sentence) => sentence !== "" && !message.includes(sentence)).join(" ");
  return missing === "" ? message : `${message.replace(/\.$/, "")}: ${missing}`;
}

function violationsOf({ message, detail: { field } }: LongshoreError): ReturnType<typeof detailOf>[] {
  return field === undefined ? [] : [detailOf(BadRequest, { fieldViolations: [{ field, description: message }] })];
}
