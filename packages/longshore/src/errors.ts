// The few errors of Longshore. A handler throws TerminalError to say "never again"; anything else it throws may be tried again.

/** Stable, searchable codes. Each is explained in docs/reference/errors.md; a test compares the two lists. */
export const errorCodes = [
  "LONGSHORE_BAD_INPUT",
  "LONGSHORE_BAD_DEFINITION",
  "LONGSHORE_BAD_CONFIG",
  "LONGSHORE_BAD_OUTPUT",
  "LONGSHORE_CONFLICT",
  "LONGSHORE_CLOSED",
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
export type ErrorCode = (typeof errorCodes)[number];

/** Where a bad input went wrong, for machines: `field` is a path such as `jobs[2].labels`. */
export interface ErrorDetail {
  field?: string;
  expected?: string;
  line?: number;
  column?: number;
}

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

/** Thrown by a handler: this failure is final, whatever the retry policy says. */
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

/** Turns whatever was thrown into an Error, in this one place. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown;
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
