// The errors of Longshore. A handler throws TerminalError for a failure that must not be retried; every other error may be retried.

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
  "LONGSHORE_RUN_FAILED",
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
  /** The id of the run that caused a conflict. */
  run?: string;
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

/** Thrown by a handler: this failure is final, regardless of the retry policy. */
export class TerminalError extends LongshoreError {
  override readonly name: string = "TerminalError";
  readonly [terminalBrand] = true;

  constructor(message: string, options: { cause?: unknown } = {}) {
    super("LONGSHORE_TERMINAL", message, options);
  }
}

/** True for a TerminalError of any copy of this package: two copies in one process must recognise each other's errors. */
export function isTerminal(error: unknown): boolean {
  return typeof error === "object" && error !== null && (error as { [terminalBrand]?: unknown })[terminalBrand] === true;
}

/** A failure that a retry cannot fix, with a code for programs. */
export function refusal(code: ErrorCode, message: string, field?: string): TerminalError {
  return new TerminalError(message, { cause: new LongshoreError(code, message, field === undefined ? {} : { detail: { field } }) });
}

/** Error codes of the operating system and of Node's HTTP client. They mean that a peer cannot be reached or does not reply. */
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

/** How many errors of a chain of causes are examined. */
const causesMax = 5;

/**
 * The code of an error from any library; undefined when there is no code for it. For a TerminalError, it is the code of the error that it
 * wraps. A `fetch` that reached no server is LONGSHORE_UNREACHABLE (the reason is in its cause), and an expired `AbortSignal.timeout` is
 * LONGSHORE_DEADLINE.
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

/** Whether the same call may succeed later: the peer could not be reached, or could not write. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(toError(error));
  return code === "LONGSHORE_UNREACHABLE" || code === "LONGSHORE_STORE_UNAVAILABLE";
}

/** Whether the content of the call was refused: sending it again cannot help. */
export function isRefused(error: unknown): error is LongshoreError {
  const code = codeOf(toError(error));
  return code === "LONGSHORE_BAD_INPUT" || code === "LONGSHORE_BAD_OUTPUT" || code === "LONGSHORE_LIMIT";
}

/** Whether the call came too late: this process is shutting down, or the object was closed. */
export function isClosing(error: unknown): boolean {
  const code = codeOf(toError(error));
  return code === "LONGSHORE_SHUTDOWN" || code === "LONGSHORE_CLOSED";
}

/**
 * Turns any thrown value into an Error. An error of another realm, such as `node:vm`, is not an instance of our Error class but is
 * recognised too.
 */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error || isNativeError(thrown)) return thrown;
  return new Error(typeof thrown === "string" ? thrown : describe(thrown));
}

/** True for an error of any realm. Without modules of Node, because browsers load this file too. */
function isNativeError(thrown: unknown): thrown is Error {
  return Object.prototype.toString.call(thrown) === "[object Error]";
}

function describe(thrown: unknown): string {
  try {
    return `A value that is not an Error was thrown: ${JSON.stringify(thrown)}`;
  } catch {
    // A value that JSON refuses (a cycle, a bigint) still has a type to name.
    return `A value that is not an Error was thrown: ${typeof thrown}`;
  }
}
