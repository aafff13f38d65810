// Errors on the link. Everything on which a caller bases a decision arrives unchanged: code, detail, whether the error is final, and further
// plain fields.

import { type ErrorCode, type ErrorDetail, errorCodes, isTerminal, LongshoreError, TerminalError, toError } from "../../core/errors.ts";

/** An error as JSON. */
export interface CarriedError {
  readonly message: string;
  readonly name?: string;
  readonly code?: string;
  readonly detail?: ErrorDetail;
  /** True for a failure that no retry can fix. */
  readonly terminal?: true;
  /** Own fields that are plain values, such as the time until a retry makes sense. */
  readonly fields?: Readonly<Record<string, string | number | boolean>>;
  readonly cause?: CarriedError;
}

/** How many errors of a chain of causes are carried. */
const causesMax = 3;
/** A longer message is cut: it is for people. */
const messageCharsMax = 65_536;
/** Fields that are carried separately, or not at all: the stack belongs to the log of the other process. */
const known: ReadonlySet<string> = new Set(["name", "message", "stack", "code", "detail", "cause"]);

export function carriedError(thrown: unknown, depth = 1): CarriedError {
  const error = toError(thrown);
  const { code, detail } = error as { code?: unknown; detail?: unknown };
  const fields = plainFields(error);
  return {
    message: error.message.slice(0, messageCharsMax),
    ...(error.name === "Error" ? {} : { name: error.name }),
    ...(typeof code === "string" ? { code } : {}),
    ...(error instanceof LongshoreError && Object.keys(detail as object).length > 0 ? { detail: detail as ErrorDetail } : {}),
    ...(isTerminal(error) ? { terminal: true } : {}),
    ...(Object.keys(fields).length > 0 ? { fields } : {}),
    ...(error.cause !== undefined && depth < causesMax ? { cause: carriedError(error.cause, depth + 1) } : {}),
  };
}

/** The error that a caller gets. An error that is not ours becomes an Error with the same name and code. */
export function errorFrom(carried: unknown): Error {
  const { message, name, code, detail, terminal, fields, cause } = (carried ?? {}) as Partial<CarriedError>;
  const text = typeof message === "string" ? message : "The owner reported an error without a message.";
  const options = cause === undefined ? {} : { cause: errorFrom(cause) };
  if (terminal === true) return Object.assign(new TerminalError(text, options), fields);
  if (isErrorCode(code))
    return Object.assign(new LongshoreError(code, text, detail === undefined ? options : { ...options, detail }), fields);
  const error = new Error(text, options);
  if (name !== undefined) Object.defineProperty(error, "name", { value: name, configurable: true, writable: true });
  return Object.assign(error, code === undefined ? {} : { code }, fields);
}

function plainFields(error: Error): Record<string, string | number | boolean> {
  const fields: Record<string, string | number | boolean> = {};
  for (const [name, value] of Object.entries(error)) {
    const isPlain = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
    if (isPlain && !known.has(name)) fields[name] = value;
  }
  return fields;
}

function isErrorCode(code: unknown): code is ErrorCode {
  return (errorCodes as readonly unknown[]).includes(code);
}
