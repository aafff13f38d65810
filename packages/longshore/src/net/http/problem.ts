// The error format of our own API, and of protocols without a format of their own.

import type { ErrorCode } from "../../core/errors.ts";
import type { HttpReply, Problem, ProblemKind } from "./http.ts";

export interface ProblemBody {
  code: ErrorCode;
  message: string;
  /** The place of the mistake in the input, such as `steps.2.task`. */
  field?: string;
  expected?: string;
  line?: number;
  column?: number;
  /** The id of the run that is in the way. */
  run?: string;
}

/** The codes of refusals of the access check and the listener, which have no code. */
const codes: Readonly<Record<ProblemKind, ErrorCode>> = {
  unauthorized: "LONGSHORE_UNAUTHORIZED",
  forbidden: "LONGSHORE_UNAUTHORIZED",
  "not-found": "LONGSHORE_NOT_FOUND",
  "method-not-allowed": "LONGSHORE_BAD_INPUT",
  "too-large": "LONGSHORE_LIMIT",
  "bad-request": "LONGSHORE_BAD_INPUT",
  overloaded: "LONGSHORE_LIMIT",
  unavailable: "LONGSHORE_STORE_UNAVAILABLE",
  internal: "LONGSHORE_INTERNAL",
};

export function refuse(problem: Problem): HttpReply {
  const { kind, status, message, detail } = problem;
  return problemReply(status, { code: (problem.code as ErrorCode | undefined) ?? codes[kind], message, ...detail });
}

export function problemReply(status: number, problem: ProblemBody): HttpReply {
  const { code, message, field, expected, line, column, run } = problem;
  return {
    status,
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ error: { code, message, field, expected, line, column, run } }),
  };
}
