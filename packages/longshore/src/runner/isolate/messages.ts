// The messages between the runner and the thread or process in which handlers run. They contain only data that structured cloning supports.

import type { Context, OutputStream } from "../../core/context.ts";
import { codeOf, type ErrorCode, errorCodes, isTerminal, LongshoreError, TerminalError, toError } from "../../core/errors.ts";
import type { Json } from "../../core/json/json.ts";

/** The data of a call at its start. */
export type CallContext = Pick<Context, "attempt" | "ids" | "idempotencyKey" | "trace" | "upstream" | "deferrals" | "deferred" | "native">;

export type ToHandlers =
  | { readonly kind: "call"; readonly call: number; readonly task: string; readonly input: unknown; readonly context: CallContext }
  | { readonly kind: "stop"; readonly call: number; readonly reason: SentError }
  /** The reply to an `ask`. */
  | { readonly kind: "answer"; readonly call: number; readonly ask: number; readonly value?: unknown; readonly error?: SentError };

export type FromHandlers =
  | { readonly kind: "ready"; readonly tasks: readonly string[] }
  | { readonly kind: "refused"; readonly error: SentError }
  | { readonly kind: "log"; readonly call: number; readonly entry: string | { [field: string]: unknown }; readonly stream: OutputStream }
  | { readonly kind: "progress"; readonly call: number; readonly value: Json }
  | { readonly kind: "amend"; readonly call: number; readonly name: string; readonly value: Json }
  | { readonly kind: "ask"; readonly call: number; readonly ask: number; readonly what: HostCall; readonly value?: unknown }
  | { readonly kind: "returned"; readonly call: number; readonly value: unknown }
  | { readonly kind: "threw"; readonly call: number; readonly error: SentError };

/** Requests of a handler to the runner that have a reply. */
export type HostCall = "heartbeat" | "putBlob" | "getBlob" | "ask" | "emit" | "nextPart" | "endParts";

/** Selects one of a call's readers of parts; `stepId` is the step that a new reader reads. */
export interface PartsCall {
  readonly reader: number;
  readonly stepId: string;
}

/** The modules that a thread or process loads, as paths. */
export interface HandlerModules {
  readonly files: readonly string[];
}

export interface SentError {
  readonly name: string;
  readonly message: string;
  readonly stack: string | undefined;
  readonly code: ErrorCode | undefined;
  readonly terminal: boolean;
  readonly cause: SentError | undefined;
}

/** How many errors of a chain of causes are sent. */
const causesMax = 5;

export function packError(thrown: unknown, depth = 0): SentError {
  const error = toError(thrown);
  return {
    name: error.name,
    message: error.message,
    stack: error.stack,
    code: ownCode(error) ?? codeOf(error),
    terminal: isTerminal(error),
    cause: error.cause === undefined || depth >= causesMax ? undefined : packError(error.cause, depth + 1),
  };
}

/** The code of a Longshore error, from any copy of this package. */
function ownCode(error: Error): ErrorCode | undefined {
  const { code } = error as { code?: unknown };
  return errorCodes.find((known) => known === code);
}

/** Restores an error with the same meaning. Classes that the runner acts on are kept; for others, only the name is. */
export function unpackError(sent: SentError): Error {
  const cause = sent.cause === undefined ? undefined : unpackError(sent.cause);
  const error = sent.terminal
    ? new TerminalError(sent.message, { cause })
    : sent.code !== undefined
      ? new LongshoreError(sent.code, sent.message, { cause })
      : new Error(sent.message, cause === undefined ? undefined : { cause });
  if (error.name !== sent.name) Object.defineProperty(error, "name", { value: sent.name, configurable: true });
  Object.defineProperty(error, "stack", { value: sent.stack, configurable: true, writable: true });
  return error;
}
