// The few errors of Longshore. A handler throws TerminalError for "never try again"; anything else it throws may be tried again.

import { types } from "node:util";

/** Stable, searchable codes. Each is explained in docs/reference/errors.md; a test compares the two lists. */
export const errorCodes = [
  "LONGSHORE_BAD_INPUT",
  "LONGSHORE_BAD_DEFINITION",
  "LONGSHORE_BAD_CONFIG",
  "LONGSHORE_BAD_OUTPUT",
  "LONGSHORE_CONFLICT",
  "LONGSHORE_CLOSED",
  "LONGSHORE_DATA_DAMAGED",
  "LONGSHORE_LEASE_LOST",
  "LONGSHORE_CANCELLED",
  "LONGSHORE_DEADLINE",
  "LONGSHORE_INTERNAL",
  "LONGSHORE_SHUTDOWN",
  "LONGSHORE_LIMIT",
  "LONGSHORE_NO_HANDLER",
  "LONGSHORE_NOT_FOUND",
  "LONGSHORE_SHELL_OFF",
  "LONGSHORE_STORE_UNAVAILABLE",
  "LONGSHORE_TASK_FAILED",
  "LONGSHORE_TERMINAL",
  "LONGSHORE_UNAUTHORIZED",
  "LONGSHORE_UNREACHABLE",
  "LONGSHORE_UNSUPPORTED_NODE",
] as const;
/** The stable code of an error. docs/reference/errors.md explains each. */
export type ErrorCode = (typeof errorCodes)[number];

/** The place of a mistake in the input, for programs: `field` is a path such as `jobs[2].labels`. */
export interface ErrorDetail {
  field?: string;
  expected?: string;
  line?: number;
  column?: number;
}

/** The error that Longshore throws. Compare its `code`; the message is for people and may change. */
export class LongshoreError extends Error {
  override readonly name: string = "LongshoreError";
  readonly code: ErrorCode;
  readonly detail: ErrorDetail;

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; detail?: ErrorDetail } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.detail = options.detail ?? {};
  }
}

const terminalBrand = Symbol.for("longshore.terminal");

/** Thrown by a handler: this failure is final, whatever the retry policy is. */
export class TerminalError extends LongshoreError {
  override readonly name: string = "TerminalError";
  readonly [terminalBrand] = true;

  constructor(message: string, options: { cause?: unknown } = {}) {
    super("LONGSHORE_TERMINAL", message, options);
  }
}

/** True for a TerminalError of any copy of this package: two copies in one tree must understand each other. */
export function isTerminal(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { [terminalBrand]?: unknown })[terminalBrand] === true;
}

/** A failure that no repetition can mend, with a code for machines. */
export function refusal(code: ErrorCode, message: string, field?: string): TerminalError {
  return new TerminalError(message, { cause: new LongshoreError(code, message, field === undefined ? {} : { detail: { field } }) });
}

/** What the operating system and Node's HTTP client call a peer that is not there or does not answer. */
const unreachableCodes: ReadonlySet<unknown> = new Set([
  "EAI_AGAIN",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "ENOTFOUND",
  "EPIPE",
  "ETIMEDOUT",
  "UND_ERR_BODY_TIMEOUT",
  "UND_ERR_CONNECT_TIMEOUT",
  "UND_ERR_HEADERS_TIMEOUT",
  "UND_ERR_SOCKET",
]);

/** How many links of a chain of causes are looked at. */
const causesMax = 5;

/**
 * The meaning of an error for programs, from any library; undefined when we have no code for it. A TerminalError of ours
 * wraps the error with the reason. A `fetch` that found no server is LONGSHORE_UNREACHABLE, though the reason is in its cause, and
 * the end of an `AbortSignal.timeout` is LONGSHORE_DEADLINE.
 */
export function codeOf(error: Error): ErrorCode | undefined {
  if (isTerminal(error) && error.cause instanceof LongshoreError) return error.cause.code;
  if (error instanceof LongshoreError) return error.code;
  if (error.name === "TimeoutError") return "LONGSHORE_DEADLINE";
  let link: unknown = error;
  for (let depth = 0; depth < causesMax && link instanceof Error; depth++, link = link.cause) {
    if (unreachableCodes.has((link as { code?: unknown }).code)) return "LONGSHORE_UNREACHABLE";
  }
  return undefined;
}

/** Whether the same call may work later: the peer was not there, or could not write. Every decision about another try begins here. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(toError(error));
  return code === "LONGSHORE_UNREACHABLE" || code === "LONGSHORE_STORE_UNAVAILABLE";
}

/** Whether the content itself is refused: sending the same again cannot help, however often. */
export function isRefused(error: unknown): error is LongshoreError {
  const code = codeOf(toError(error));
  return code === "LONGSHORE_BAD_INPUT" || code === "LONGSHORE_BAD_OUTPUT" || code === "LONGSHORE_LIMIT";
}

/** Whether the call came too late: this process is shutting down, or the object was closed. */
export function isClosing(error: unknown): boolean {
  const code = codeOf(toError(error));
  return code === "LONGSHORE_SHUTDOWN" || code === "LONGSHORE_CLOSED";
}

/** Turns whatever was thrown into an Error, in this one place. One of another realm, such as `node:vm` makes, is an error and no instance of ours. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error || types.isNativeError(thrown)) return thrown;
  return new Error(typeof thrown === "string" ? thrown : describe(thrown));
}

function describe(thrown: unknown): string {
  try {
    return `A value that is not an Error was thrown: ${JSON.stringify(thrown)}`;
  } catch {
    // Whatever JSON refuses (a cycle, a bigint) still has a type worth naming.
    return `A value that is not an Error was thrown: ${typeof thrown}`;
  }
}
